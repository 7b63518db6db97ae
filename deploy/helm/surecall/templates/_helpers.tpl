{{- define "surecall.name" -}}
{{- if contains "surecall" .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-surecall" .Release.Name | trunc 63 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "surecall.selector" -}}
app.kubernetes.io/name: surecall
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "surecall.labels" -}}
{{ include "surecall.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end }}
