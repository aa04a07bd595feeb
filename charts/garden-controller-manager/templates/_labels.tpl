{{- define "garden-controller-manager.labels" -}}
app.kubernetes.io/name: garden-controller-manager
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "garden-controller-manager.image" -}}
{{- with .Values.imageRegistry }}{{ . }}/{{ end }}{{ .Values.image.repository }}:{{ .Values.image.tag }}
{{- end -}}
