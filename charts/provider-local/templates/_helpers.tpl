{{- define "provider-local.labels" -}}
app.kubernetes.io/name: provider-local
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "provider-local.image" -}}
{{- with .root.Values.imageRegistry }}{{ . }}/{{ end }}{{ .image.repository }}:{{ .image.tag }}
{{- end -}}
