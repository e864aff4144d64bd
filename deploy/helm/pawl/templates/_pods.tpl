{{/* What pods run as. */}}
{{- define "pawl.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- define "pawl.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{/* The token, the DSN and URLs with passwords, as files of one volume. Context: {root, server: bool, broker: bool} */}}
{{- define "pawl.secretVolume" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      - secret: {name: {{ .root.Values.token.existingSecret }}, items: [{key: {{ .root.Values.token.key }}, path: token}]}
      {{- with .root.Values.database }}
      {{- if and $.server .existingSecret }}
      - secret: {name: {{ .existingSecret }}, items: [{key: {{ .key }}, path: dsn}{{ with .notifyKey }}, {key: {{ . }}, path: notify-dsn}{{ end }}]}
      {{- end }}
      {{- end }}
      {{- with .root.Values.blobs }}
      {{- if and $.server .existingSecret }}
      - secret: {name: {{ .existingSecret }}, items: [{key: {{ .accessKey }}, path: access-key}, {key: {{ .secretKey }}, path: secret-key}]}
      {{- end }}
      {{- end }}
      {{- with .root.Values.broker }}
      {{- if and $.broker .existingSecret }}
      - secret: {name: {{ .existingSecret }}, items: [{key: {{ .key }}, path: broker}]}
      {{- end }}
      {{- end }}
{{- end -}}

{{/* Context: {root, broker: bool} */}}
{{- define "pawl.brokerEnv" -}}
{{- if .root.Values.broker.existingSecret -}}
- {name: PAWL_BROKER_FILE, value: /run/pawl/broker}
{{- else if .root.Values.broker.url -}}
- {name: PAWL_BROKER, value: {{ .root.Values.broker.url | quote }}}
{{- end -}}
{{- end -}}

{{/* A configuration file, of the settings of a server or a worker. */}}
{{- define "pawl.settings" -}}
{{- range $key, $value := . }}
{{ $key }}: {{ toJson $value }}
{{- end }}
{{- end -}}
