{{- define "provider-local.labels" -}}
app.kubernetes.io/name: provider-local
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "provider-local.image" -}}
{{- with .root.Values.imageRegistry }}{{ . }}/{{ end }}{{ .image.repository }}:{{ .image.tag }}
{{- end -}}

{{/* The Lease of the migration lock: that of the configuration, or of the default configuration. */}}
{{- define "provider-local.migrationLock" -}}
{{- with .Values.leaderMigration.config }}
{{- required "leaderMigration.config.leaderName: the migration lock" .leaderName }}
{{- else }}cloud-provider-extraction-migration
{{- end }}
{{- end -}}
