{{/* The same names and labels as in `konverge manifests`; a test compares both. */}}
{{- define "konverge.labels" -}}
app.kubernetes.io/name: konverge
app.kubernetes.io/instance: {{ .root.Release.Name }}
{{- with .component }}
app.kubernetes.io/component: {{ . }}
{{- end }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- end }}

{{/* The image, by its digest if there is one: the tag then only informs readers. */}}
{{- define "konverge.image" -}}
{{- with .Values.imageDigest }}
{{- if contains "@" $.Values.image }}
{{- fail (printf "imageDigest: image already has a digest (%s); remove one of the two" $.Values.image) }}
{{- end }}
{{- end }}
{{- list .Values.image .Values.imageDigest | compact | join "@" }}
{{- end }}

{{/* Arguments: root, name. */}}
{{- define "konverge.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "konverge.labels" (dict "root" .root) | nindent 4 }}
  {{- with .root.Values.serviceAccount.annotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
# Pods that need the token mount it explicitly.
automountServiceAccountToken: false
{{- end }}

{{/* Only labels that never change during the life of a Deployment. */}}
{{- define "konverge.selector" -}}
app.kubernetes.io/name: konverge
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end }}

{{- define "konverge.metadata" -}}
name: {{ .root.Release.Name }}-{{ .component }}{{ .suffix }}
namespace: {{ .root.Release.Namespace }}
labels: {{- include "konverge.labels" . | nindent 2 }}
{{- end }}

{{/* Fails for an empty list, which `required` accepts. Arguments: key, rules. */}}
{{- define "konverge.rules" -}}
{{- if not .rules }}
{{- fail (printf "rbac.%s: is empty; copy it from konverge manifests -o values, or set rbac.create to false" .key) }}
{{- end }}
{{- toYaml .rules }}
{{- end }}

{{/* Cluster roles are shared by all namespaces. */}}
{{- define "konverge.clusterName" -}}
{{ .Release.Namespace }}-{{ .Release.Name }}
{{- end }}

{{/*
A Pod admitted by the Pod Security level `restricted`. Arguments: root, component, group (values), args, env (name to
value), secrets (list of setting, secret, key), port (name, number), account, token, graceSeconds.
*/}}
{{- define "konverge.pod" -}}
{{- $dir := "/etc/konverge" -}}
metadata:
  labels: {{- include "konverge.labels" . | nindent 4 }}
  {{- with .group.podAnnotations }}
  annotations: {{- toYaml . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ .account }}
  automountServiceAccountToken: {{ .token }}
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .graceSeconds }}
  {{- with .root.Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .group.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- with .group.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .group.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .group.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    # The user `node` of the official images, by number: the kubelet cannot tell whether a name is root.
    runAsUser: 1000
    runAsGroup: 1000
    fsGroup: 1000
    seccompProfile: { type: RuntimeDefault }
  topologySpreadConstraints:
    {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels: {{- include "konverge.selector" $ | nindent 10 }}
    {{- end }}
  containers:
    - name: {{ .component }}
      image: {{ include "konverge.image" .root | quote }}
      {{- if ne .root.Values.imagePullPolicy "IfNotPresent" }}
      imagePullPolicy: {{ .root.Values.imagePullPolicy }}
      {{- end }}
      args: {{- toYaml .args | nindent 8 }}
      env:
        {{- range .env }}
        - { name: {{ .name }}, value: {{ .value | quote }} }
        {{- end }}
        {{- range .secrets }}
        - { name: {{ .setting }}_FILE, value: {{ $dir }}/{{ .setting }} }
        {{- end }}
        - { name: NODE_OPTIONS, value: {{ .group.nodeOptions | quote }} }
        {{- with .group.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      ports:
        - { name: {{ .port.name }}, containerPort: {{ .port.number }} }
      # Time to load the code. An unreachable Redis or API server is not a reason to restart.
      startupProbe:
        httpGet: { path: /livez, port: {{ .port.name }} }
        timeoutSeconds: 5
        periodSeconds: 2
        failureThreshold: 30
      livenessProbe:
        httpGet: { path: /livez, port: {{ .port.name }} }
        timeoutSeconds: 5
        periodSeconds: 10
        failureThreshold: 3
      readinessProbe:
        httpGet: { path: /readyz, port: {{ .port.name }} }
        timeoutSeconds: 5
        periodSeconds: 5
        failureThreshold: 2
      resources: {{- toYaml .group.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        capabilities: { drop: [ALL] }
        readOnlyRootFilesystem: true
      volumeMounts:
        - { name: tmp, mountPath: /tmp }
        - { name: secrets, mountPath: {{ $dir }}, readOnly: true }
        {{- with .group.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    - name: tmp
      emptyDir: { sizeLimit: 64Mi }
    - name: secrets
      projected:
        # 0440, in the notation that every YAML parser reads equally.
        defaultMode: 288
        sources:
          {{- range .secrets }}
          - secret:
              name: {{ .secret }}
              items: [{ key: {{ .key }}, path: {{ .setting }} }]
          {{- end }}
    {{- with .group.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}

{{/* Arguments: those of the Pod, and replicas; without replicas, an autoscaler sets their number. */}}
{{- define "konverge.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata: {{- include "konverge.metadata" . | nindent 2 }}
spec:
  {{- if hasKey . "replicas" }}
  replicas: {{ .replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  # A new Pod is ready before an old one drains.
  strategy:
    type: RollingUpdate
    rollingUpdate: { maxSurge: 1, maxUnavailable: 0 }
  selector:
    matchLabels: {{- include "konverge.selector" . | nindent 6 }}
  template: {{- include "konverge.pod" . | nindent 4 }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {{- include "konverge.metadata" . | nindent 2 }}
spec:
  maxUnavailable: 1
  # A Pod that is not ready does not block the drain of its node.
  unhealthyPodEvictionPolicy: AlwaysAllow
  selector:
    matchLabels: {{- include "konverge.selector" . | nindent 6 }}
{{- end }}

{{/* Workers of one role. Arguments: root, component, role, group, and replicas as above. */}}
{{- define "konverge.workers" -}}
{{- $values := .root.Values -}}
{{- $env := list
  (dict "name" "KONVERGE_ROLE" "value" .role)
  (dict "name" "KONVERGE_BUILD_ID" "value" (include "konverge.image" .root))
  (dict "name" "KONVERGE_LEASE_NAMESPACE" "value" .root.Release.Namespace)
  (dict "name" "KONVERGE_METRICS_HOST" "value" "0.0.0.0")
  (dict "name" "KONVERGE_METRICS_PORT" "value" "9090") -}}
{{- with $values.namespaces -}}
{{- $env = append $env (dict "name" "KONVERGE_NAMESPACES" "value" (join "," .)) -}}
{{- end -}}
{{- $pod := dict
  "args" (list "worker" "--config" $values.config)
  "env" $env
  "secrets" (list (dict "setting" "KONVERGE_REDIS_URL" "secret" $values.redis.existingSecret "key" $values.redis.key))
  "port" (dict "name" "metrics" "number" 9090)
  "account" .root.Release.Name
  "token" true
  "graceSeconds" (add $values.drainGraceSeconds 10) -}}
{{ include "konverge.deployment" (merge $pod .) }}
---
apiVersion: v1
kind: Service
metadata: {{- include "konverge.metadata" (merge (dict "suffix" "-metrics") .) | nindent 2 }}
spec:
  # Each Pod is scraped separately, even if it is not ready.
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {{- include "konverge.selector" . | nindent 4 }}
  ports:
    - { name: metrics, port: 9090, targetPort: metrics }
{{- end }}

{{/*
Limits who connects to the Pods of a component. Arguments: root, component, port (name), from. Outgoing connections are
not limited: the addresses of Redis and of the API servers are unknown here.
*/}}
{{- define "konverge.networkPolicy" -}}
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{- include "konverge.metadata" . | nindent 2 }}
spec:
  podSelector:
    matchLabels: {{- include "konverge.selector" . | nindent 6 }}
  policyTypes: [Ingress]
  {{- if .from }}
  ingress:
    - from: {{- toYaml .from | nindent 8 }}
      ports: [{ protocol: TCP, port: {{ .port }} }]
  {{- else }}
  # A rule with an empty `from` would admit everyone.
  ingress: []
  {{- end }}
{{- end }}

{{/* At most twice the Pods per minute, so that a short backlog does not lead to the maximum. */}}
{{- define "konverge.scalingBehavior" -}}
scaleUp:
  policies: [{ type: Percent, value: 100, periodSeconds: 60 }]
scaleDown:
  # Longer than a worker takes to drain.
  stabilizationWindowSeconds: 300
{{- end }}
