{{- define "provider-aws.labels" -}}
app.kubernetes.io/name: provider-aws
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* The Lease of the migration lock: that of the configuration, or of the default configuration. */}}
{{- define "provider-aws.migrationLock" -}}
{{- with .Values.leaderMigration.config }}
{{- required "leaderMigration.config.leaderName: the migration lock" .leaderName }}
{{- else }}cloud-provider-extraction-migration
{{- end }}
{{- end -}}

{{/* Values of one seed over those for all. Which seed it is the gardenlet tells, where it installs the chart from a registration;
     standing alone there is none. Every template begins with it: they share their values. */}}
{{- define "provider-aws.ofSeed" -}}
{{- $seed := dig "seed" "name" "" (.Values.gardener | default dict) -}}
{{- include "provider-aws.merge" (dict "into" .Values "from" (get (.Values.seeds | default dict) $seed | default dict)) -}}
{{- end -}}

{{/* Map by map, as Helm does it with files of values. mergeOverwrite leaves out what is 0, false or empty. */}}
{{- define "provider-aws.merge" -}}
{{- range $key, $value := .from -}}
{{- $below := get $.into $key -}}
{{- if and (kindIs "map" $value) (kindIs "map" $below) -}}
{{- include "provider-aws.merge" (dict "into" $below "from" $value) -}}
{{- else -}}
{{- $_ := set $.into $key $value -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Where the locks are: the main lock, and the one of leader migration. */}}
{{- define "provider-aws.lockNamespace" -}}
{{- .Values.lockNamespace | default .Release.Namespace -}}
{{- end -}}
