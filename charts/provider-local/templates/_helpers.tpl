{{- define "provider-local.labels" -}}
app.kubernetes.io/name: provider-local
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "provider-local.image" -}}
{{- with .Values.imageRegistry }}{{ . }}/{{ end }}{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end -}}
