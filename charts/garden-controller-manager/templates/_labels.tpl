{{- define "garden-controller-manager.labels" -}}
app.kubernetes.io/name: garden-controller-manager
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The Lease of the migration lock: that of the configuration, or of the default configuration. */}}
{{- define "garden-controller-manager.migrationLock" -}}
{{- with .Values.leaderMigration.config }}
{{- required "leaderMigration.config.leaderName: the migration lock" .leaderName }}
{{- else }}cloud-provider-extraction-migration
{{- end }}
{{- end -}}
