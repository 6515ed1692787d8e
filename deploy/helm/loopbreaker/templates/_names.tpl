{{/* The name of everything: the release's, with the chart's unless it is in there already. */}}
{{- define "loopbreaker.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What never changes, so that a selector can use it. */}}
{{- define "loopbreaker.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "loopbreaker.labels" -}}
{{ include "loopbreaker.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end -}}

{{- define "loopbreaker.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{- .Values.serviceAccount.name | default (include "loopbreaker.name" .) -}}
{{- else -}}
{{- .Values.serviceAccount.name | default "default" -}}
{{- end -}}
{{- end -}}

{{/* The config file: what the user wrote, with the ports, tokens and policies that the chart knows. */}}
{{- define "loopbreaker.config" -}}
{{- $own := dict "listen" "0.0.0.0:4141" "admin_listen" "0.0.0.0:4142" -}}
{{- range $key := list "listen" "admin_listen" "policies" "policy_files" -}}
{{- if hasKey $.Values.config $key -}}
{{- fail (printf "config.%s is set by the chart: remove it (policies stand under `policies`, ports under `service`)" $key) -}}
{{- end -}}
{{- end -}}
{{- if .Values.policies -}}
{{- $_ := set $own "policy_files" (list "policies/policies.yaml") -}}
{{- end -}}
{{- if .Values.tokens -}}
{{- $admin := merge (dict "tokens" .Values.tokens) (.Values.config.admin | default dict) -}}
{{- $_ := set $own "admin" $admin -}}
{{- end -}}
{{- toYaml (merge $own .Values.config) -}}
{{- end -}}

{{/* Containers may do nothing but their work. */}}
{{- define "loopbreaker.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}
