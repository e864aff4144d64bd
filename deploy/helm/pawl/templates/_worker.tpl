{{/* What a worker's container is told by its environment. Context: {root, worker} */}}
{{- define "pawl.workerEnv" -}}
{{- $w := .worker -}}
{{- $root := .root -}}
- {name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
{{- if eq $w.connection "broker" }}
{{ include "pawl.brokerEnv" . }}
{{- else }}
- {name: PAWL_SERVER, value: {{ include "pawl.serverURL" . | quote }}}
{{- end }}
{{- if eq $w.runtime "none" }}
- {name: PAWL_TOKEN, valueFrom: {secretKeyRef: {name: {{ $root.Values.token.existingSecret }}, key: {{ $root.Values.token.key }}}}}
{{- else }}
- {name: PAWL_TOKEN_FILE, value: /run/pawl/token}
- {name: PAWL_STATE_DIR, value: /var/lib/pawl}
- {name: PAWL_RUNTIME, value: {{ $w.runtime }}}
- {name: PAWL_QUEUES, value: {{ join "," $w.queues | quote }}}
- {name: PAWL_SLOTS, value: {{ int $w.slots | quote }}}
{{- if $w.labels }}
{{- $labels := list }}
{{- range $key, $value := $w.labels }}{{ $labels = append $labels (printf "%s=%v" $key $value) }}{{ end }}
- {name: PAWL_LABELS, value: {{ join "," $labels | quote }}}
{{- end }}
{{- if not $w.settings.log_level }}
- {name: PAWL_LOG_LEVEL, value: info}
{{- end }}
{{- if $w.settings }}
- {name: PAWL_CONFIG, value: /etc/pawl/pawl.yaml}
{{- end }}
{{- end }}
{{- if and (eq $w.runtime "sandbox") $w.sandbox.allowDegraded }}
- {name: PAWL_ALLOW_DEGRADED, value: "true"}
{{- end }}
{{- if eq $w.runtime "kubernetes" }}
{{- with $w.kubernetes }}
- {name: PAWL_KUBERNETES_NAMESPACE, value: {{ include "pawl.runsNamespace" $root }}}
- {name: PAWL_KUBERNETES_HELPER_IMAGE, value: {{ include "pawl.image" (dict "root" $root "full" .helperImage "name" "pawl-pod") | quote }}}
{{- if .image }}
- {name: PAWL_KUBERNETES_IMAGE, value: {{ .image | quote }}}
{{- end }}
- {name: PAWL_KUBERNETES_PULL, value: {{ .pull }}}
- {name: PAWL_KUBERNETES_ORPHAN_AFTER, value: {{ .orphanAfter | quote }}}
{{- if .runtimeClass }}
- {name: PAWL_KUBERNETES_RUNTIME_CLASS, value: {{ .runtimeClass }}}
{{- end }}
{{- if $root.Values.runs.networks }}
- {name: PAWL_KUBERNETES_NETWORKS, value: {{ keys $root.Values.runs.networks | sortAlpha | join "," | quote }}}
{{- end }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "pawl.serverURL" -}}
{{- .worker.server | default (printf "http://%s.%s.svc:%d" (include "pawl.name" .root) .root.Release.Namespace (int .root.Values.service.port)) -}}
{{- end -}}

{{/* What may be done to a node by a container: the sandbox makes namespaces and mounts of its own, which the defaults forbid. */}}
{{- define "pawl.workerSecurity" -}}
{{- if ne .runtime "sandbox" -}}
{{- include "pawl.containerSecurity" . -}}
{{- else if .sandbox.privileged -}}
privileged: true
runAsNonRoot: false
runAsUser: 0
runAsGroup: 0
readOnlyRootFilesystem: true
{{- else -}}
{{- include "pawl.containerSecurity" . }}
procMount: Unmasked
seccompProfile: {type: Unconfined}
appArmorProfile: {type: Unconfined}
{{- end -}}
{{- end -}}

{{/* The rule of egress that lets a worker reach its servers. Context: {root, worker} */}}
{{- define "pawl.workerWay" -}}
{{- if eq .worker.connection "broker" -}}
- ports:
    {{- range .root.Values.broker.ports }}
    - {port: {{ int . }}, protocol: TCP}
    {{- end }}
{{- else if .worker.server -}}
{{- $host := (urlParse .worker.server).host -}}
{{- $port := regexFind ":[0-9]+$" $host | trimPrefix ":" | default (ternary "443" "80" (hasPrefix "https:" .worker.server)) -}}
- ports: [{port: {{ $port }}, protocol: TCP}]
{{- else -}}
- to:
    - podSelector:
        matchLabels: {{- include "pawl.selector" (dict "root" .root "component" "server") | nindent 10 }}
  ports: [{port: http, protocol: TCP}]
{{- end -}}
{{- end -}}
