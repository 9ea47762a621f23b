{{- define "opmon.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "opmon.labels" -}}
app.kubernetes.io/name: opmon
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "opmon.selector" -}}
app.kubernetes.io/name: opmon
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "opmon.serviceAccount" -}}
{{ .Values.serviceAccount.name | default (ternary (include "opmon.name" .) "default" .Values.serviceAccount.create) }}
{{- end }}

{{- define "opmon.configMap" -}}
{{ .Values.existingConfigMap | default (include "opmon.name" .) }}
{{- end }}

{{/* opmon.yaml, as the pods read it. */}}
{{- define "opmon.config" -}}
{{- $config := deepCopy .Values.config }}
{{- if .Values.metrics.tokenSecret.name }}
{{- $metrics := get $config "metrics" | default dict }}
{{- $_ := set $config "metrics" (merge $metrics (dict "token" "${OPMON_METRICS_TOKEN}")) }}
{{- end }}
{{- toYaml $config }}
{{- end }}

{{- define "opmon.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "opmon.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "opmon.security" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "opmon.env" -}}
- name: OPMON_CONFIG
  value: /etc/opmon/opmon.yaml
- name: OPMON_STATE
  value: /var/lib/opmon
- name: OPMON_METRICS_LISTEN
  value: 0.0.0.0:{{ .Values.metrics.port }}
- name: OPMON_WEB_LISTEN
  value: 0.0.0.0:{{ .Values.web.port }}
- name: OPMON_MLFLOW_TRACKING_URI
  value: {{ .Values.mlflow.trackingUri | quote }}
- name: OPMON_DATABASE
  valueFrom:
    secretKeyRef: {name: {{ .Values.database.secretName }}, key: {{ .Values.database.key }}}
{{- with .Values.metrics.tokenSecret.name }}
- name: OPMON_METRICS_TOKEN
  valueFrom:
    secretKeyRef: {name: {{ . }}, key: {{ $.Values.metrics.tokenSecret.key }}}
{{- end }}
- name: MPLCONFIGDIR
  value: /tmp/matplotlib
{{- range $name, $value := .Values.env }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "opmon.envFrom" -}}
{{- with .Values.mlflow.secretName }}
- secretRef: {name: {{ . }}}
{{- end }}
{{- range .Values.envFromSecrets }}
- secretRef: {name: {{ . }}}
{{- end }}
{{- end }}

{{/* A pod of a hook has the configuration, and none of the disks, which may hang on another node. */}}
{{- define "opmon.mounts" -}}
- {name: config, mountPath: /etc/opmon/opmon.yaml, subPath: opmon.yaml, readOnly: true}
- {name: state, mountPath: /var/lib/opmon}
- {name: tmp, mountPath: /tmp}
{{- if and .root.Values.log.existingClaim (not .hook) }}
- {name: log, mountPath: {{ .root.Values.log.mountPath }}, readOnly: true}
{{- end }}
{{- end }}

{{- define "opmon.volumes" -}}
- name: config
  configMap: {name: {{ include "opmon.configMap" .root }}{{ if and .hook (not .root.Values.existingConfigMap) }}-{{ .component }}{{ end }}}
- name: state
{{- if and .root.Values.state.existingClaim (not .hook) }}
  persistentVolumeClaim: {claimName: {{ .root.Values.state.existingClaim }}}
{{- else }}
  emptyDir: {sizeLimit: {{ .root.Values.state.sizeLimit }}}
{{- end }}
- name: tmp
  emptyDir: {}
{{- if and .root.Values.log.existingClaim (not .hook) }}
- name: log
  persistentVolumeClaim: {claimName: {{ .root.Values.log.existingClaim }}, readOnly: true}
{{- end }}
{{- end }}

{{/* What all pods have in common; of a component and its command. A hook runs before the chart's own objects are there. */}}
{{- define "opmon.pod" -}}
metadata:
  labels:
    {{- include "opmon.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .component }}
  annotations:
    checksum/config: {{ include "opmon.config" .root | sha256sum }}
    {{- with .root.Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  {{- if not .hook }}
  serviceAccountName: {{ include "opmon.serviceAccount" .root }}
  {{- end }}
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: {{ .root.Values.terminationGracePeriodSeconds }}
  {{- with .root.Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .restart }}
  restartPolicy: {{ . }}
  {{- end }}
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- if and .gpu .gpu.enabled .gpu.runtimeClassName }}
  runtimeClassName: {{ .gpu.runtimeClassName }}
  {{- end }}
  securityContext: {{ include "opmon.podSecurity" .root | nindent 4 }}
  {{- with .placing }}
  {{- with .nodeSelector }}
  nodeSelector: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .tolerations }}
  tolerations: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- with .affinity }}
  affinity: {{ toYaml . | nindent 4 }}
  {{- end }}
  {{- end }}
  containers:
    - name: opmon
      image: {{ include "opmon.image" .root }}
      imagePullPolicy: {{ .root.Values.image.pullPolicy }}
      args: {{ toJson .args }}
      securityContext: {{ include "opmon.security" .root | nindent 8 }}
      env: {{ include "opmon.env" .root | nindent 8 }}
      {{- with include "opmon.envFrom" .root }}
      envFrom: {{ . | nindent 8 }}
      {{- end }}
      {{- if .ports }}
      ports:
        {{- range $name, $port := .ports }}
        - {name: {{ $name }}, containerPort: {{ $port }}}
        {{- end }}
      startupProbe:
        httpGet: {path: /healthz, port: metrics}
        periodSeconds: 2
        failureThreshold: 60
      livenessProbe:
        httpGet: {path: /healthz, port: metrics}
        periodSeconds: 20
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: "/readyz?exclude=monitors", port: metrics}
        periodSeconds: 10
        timeoutSeconds: 5
      {{- end }}
      {{- $resources := deepCopy (.resources | default dict) }}
      {{- if and .gpu .gpu.enabled }}
      {{- $limits := merge (dict .gpu.resource .gpu.count) (get $resources "limits" | default dict) }}
      {{- $_ := set $resources "limits" $limits }}
      {{- end }}
      resources: {{ toYaml $resources | nindent 8 }}
      volumeMounts: {{ include "opmon.mounts" . | nindent 8 }}
  volumes: {{ include "opmon.volumes" . | nindent 4 }}
{{- end }}
