{{- define "etcd-druid.labels" -}}
app.kubernetes.io/name: etcd-druid
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "etcd-druid.image" -}}
{{- with .root.Values.imageRegistry }}{{ . }}/{{ end }}{{ .image.repository }}:{{ .image.tag }}
{{- end -}}
