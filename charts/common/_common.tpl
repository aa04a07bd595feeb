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
{{- include "repot.suiteRegistry" .root }}{{ .image.repository }}:{{ include "repot.imageTag" .image }}
{{- end -}}

{{/* The tag of an image, and the digest if the image has a digest. Input: image. */}}
{{- define "repot.imageTag" -}}
{{ .tag }}{{ with .digest }}@{{ . }}{{ end }}
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
{{- else }}
# The loss of a node costs a single Pod where the cluster has further nodes.
affinity:
  podAntiAffinity:
    preferredDuringSchedulingIgnoredDuringExecution:
      - weight: 100
        podAffinityTerm:
          topologyKey: kubernetes.io/hostname
          labelSelector:
            matchLabels:
              {{- .labels | nindent 14 }}
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
# With the default, a Pod that does not become ready would block a drain of its node.
unhealthyPodEvictionPolicy: AlwaysAllow
selector:
  matchLabels:
    {{- .labels | nindent 4 }}
{{- end -}}

{{/* A NetworkPolicy for the health port of Pods in a seed, or nothing. Users of a shoot choose addresses that
     kube-apiserver of the shoot connects to, as for webhooks, and metrics name the shoots of all projects.
     Input: root, name, namespace, and labels of the Pods as text. */}}
{{- define "repot.networkPolicy" -}}
{{- if .root.Values.networkPolicy.enabled -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
  labels:
    {{- .labels | nindent 4 }}
spec:
  podSelector:
    matchLabels:
      {{- .labels | nindent 6 }}
  policyTypes: [Ingress]
  ingress:
    - {{ include "repot.outsideOfControlPlanes" . | nindent 6 | trim }}
      ports:
        - protocol: TCP
          port: {{ .root.Values.healthPort }}
{{- end -}}
{{- end -}}

{{/* The sources of a NetworkPolicy: all namespaces without the control plane of a shoot. */}}
{{- define "repot.outsideOfControlPlanes" -}}
from:
  - namespaceSelector:
      matchExpressions:
        - key: shoot.gardener.cloud/namespace
          operator: DoesNotExist
{{- end -}}

{{/* The values of monitoring: an empty map where a chart has none. */}}
{{- define "repot.monitoring" -}}
{{- get (.Values.global | default dict) "monitoring" | default dict | toYaml -}}
{{- end -}}

{{/* A PodMonitor for the health port of Pods, or nothing. Input: root, name, namespace, and labels of the Pods
     as text. */}}
{{- define "repot.podMonitor" -}}
{{- $monitoring := include "repot.monitoring" .root | fromYaml -}}
{{- if $monitoring.enabled -}}
apiVersion: monitoring.coreos.com/v1
kind: PodMonitor
metadata:
  name: {{ .name }}
  namespace: {{ .namespace }}
  labels:
    {{- .labels | nindent 4 }}
    {{- with $monitoring.labels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  selector:
    matchLabels:
      {{- .labels | nindent 6 }}
  podMetricsEndpoints:
    - port: health
      path: /metrics
      interval: {{ $monitoring.scrapeInterval }}
      # The label `namespace` of a series about a Shoot is the namespace of the Shoot, not of the Pod.
      honorLabels: true
{{- end -}}
{{- end -}}

{{/* A PrometheusRule with the groups of files/rules.yaml, or nothing. Input: root and name. */}}
{{- define "repot.prometheusRule" -}}
{{- $monitoring := include "repot.monitoring" .root | fromYaml -}}
{{- if $monitoring.enabled -}}
{{- $pages := required "monitoring.runbookURL is empty: set monitoring.runbookURL to the URL of the folder docs/ of this version on your Git host, because each alert links to a runbook, or set global.monitoring.enabled to false" .root.Values.monitoring.runbookURL -}}
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  {{- with $monitoring.labels }}
  labels:
    {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  {{- .root.Files.Get "files/rules.yaml" | replace "RUNBOOK_URL" (trimSuffix "/" $pages) | trim | nindent 2 }}
{{- end -}}
{{- end -}}
