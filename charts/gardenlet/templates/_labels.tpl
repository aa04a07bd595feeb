{{- define "gardenlet.labels" -}}
app.kubernetes.io/name: gardenlet
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gardenlet.image" -}}
{{- with .Values.imageRegistry }}{{ . }}/{{ end }}{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end -}}
