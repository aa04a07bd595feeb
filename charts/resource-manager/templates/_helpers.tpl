{{- define "resource-manager.labels" -}}
app.kubernetes.io/name: resource-manager
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "resource-manager.image" -}}
{{- with .root.Values.imageRegistry }}{{ . }}/{{ end }}{{ .image.repository }}:{{ .image.tag }}
{{- end -}}
