{{/* Templates that all charts share. Each chart has a link to this file, and `helm package` copies the file. */}}

{{/* A registry and a slash, or nothing where an empty registry is allowed.
     Input: root, key of the registry in `global`, and the images that the registry has. */}}
{{- define "repot.registry" -}}
{{- $global := .root.Values.global | default dict -}}
{{- with get $global .key -}}
{{ . }}/
{{- else -}}
{{- if not $global.allowEmptyRegistry -}}
{{- fail (printf "global.%s is empty: set global.%s to the registry of %s, or set global.allowEmptyRegistry to true if the nodes have the images already" .key .key .images) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "repot.suiteRegistry" -}}
{{- include "repot.registry" (dict "root" . "key" "imageRegistry" "images" "the suite's images") -}}
{{- end -}}

{{- define "repot.kubernetesRegistry" -}}
{{- include "repot.registry" (dict "root" . "key" "kubernetesImageRegistry" "images" "Kubernetes' images and etcd") -}}
{{- end -}}

{{/* The full name of an image of the suite. Input: root, image. */}}
{{- define "repot.image" -}}
{{- include "repot.suiteRegistry" .root }}{{ .image.repository }}:{{ .image.tag }}
{{- end -}}

{{/* Fields of a Pod's spec: the credentials of registries, and the choice of the node.
     Input: values with the fields, and labels of the Pods as text. */}}
{{- define "repot.podFields" -}}
{{- with .values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with .values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .values.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range . }}
  {{- $own := dict "labelSelector" (dict "matchLabels" (fromYaml $.labels)) }}
  - {{ toYaml (hasKey . "labelSelector" | ternary . (merge $own .)) | nindent 4 | trim }}
  {{- end }}
{{- end }}
{{- end -}}

{{/* The spec of a PodDisruptionBudget. Input: values, and labels of the Pods as text. */}}
{{- define "repot.podDisruptionBudget" -}}
maxUnavailable: {{ .values.podDisruptionBudget.maxUnavailable }}
selector:
  matchLabels:
    {{- .labels | nindent 4 }}
{{- end -}}
