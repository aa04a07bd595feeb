{{- define "resource-manager.labels" -}}
app.kubernetes.io/name: resource-manager
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
