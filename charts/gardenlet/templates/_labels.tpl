{{- define "gardenlet.labels" -}}
app.kubernetes.io/name: gardenlet
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The Lease of the migration lock: that of the configuration, or of the default configuration. */}}
{{- define "gardenlet.migrationLock" -}}
{{- with .Values.leaderMigration.config }}
{{- required "leaderMigration.config.leaderName: the migration lock" .leaderName }}
{{- else }}cloud-provider-extraction-migration
{{- end }}
{{- end -}}
