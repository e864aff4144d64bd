{{- define "pawl.name" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 40 | trimSuffix "-" -}}
{{- else if contains "pawl" .Release.Name -}}
{{- .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-pawl" .Release.Name | trunc 40 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "pawl.runsNamespace" -}}
{{- .Values.runs.namespace | default (printf "%s-runs" .Release.Namespace) -}}
{{- end -}}

{{/* Labels of every object; what selects pods is pawl.selector. Context: {root, component} */}}
{{- define "pawl.labels" -}}
{{ include "pawl.selector" . }}
app.kubernetes.io/version: {{ .root.Values.image.tag | default .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "pawl.selector" -}}
app.kubernetes.io/name: pawl
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{/* An image: in full, or one of Pawl's. Context: {root, full, name} */}}
{{- define "pawl.image" -}}
{{- if .full -}}
{{- .full -}}
{{- else if not .root.Values.image.registry -}}
{{- fail (printf "image.registry is empty: say where your images are, as in --set image.registry=registry.example.com/team, or name the image %s in full" .name) -}}
{{- else -}}
{{- printf "%s/%s:%s" (trimSuffix "/" .root.Values.image.registry) .name (.root.Values.image.tag | default .root.Chart.AppVersion) -}}
{{- end -}}
{{- end -}}

{{/* The workers, each with what it does not say itself, as JSON: {"workers": […]} */}}
{{- define "pawl.workers" -}}
{{- $all := list -}}
{{- $names := list -}}
{{- range .Values.workers -}}
{{- $w := mergeOverwrite (deepCopy $.Values.workerDefaults) (deepCopy .) -}}
{{- if has $w.name $names -}}
{{- fail (printf "workers: two entries have the name %s: give one of them another" $w.name) -}}
{{- end -}}
{{- $names = append $names $w.name -}}
{{- if and (eq $w.runtime "none") (not $w.image) -}}
{{- fail (printf "workers: %s has runtime none and no image: name the image of your program with handlers" $w.name) -}}
{{- end -}}
{{- if and (eq $w.connection "broker") (not $.Values.broker.url) (not $.Values.broker.existingSecret) -}}
{{- fail (printf "workers: %s has connection broker, and there is none: set broker.url or broker.existingSecret" $w.name) -}}
{{- end -}}
{{- if and $w.autoscaling.enabled (not $w.autoscaling.prometheus) -}}
{{- fail (printf "workers: %s has autoscaling without autoscaling.prometheus: give the address of the Prometheus that scrapes the servers, as in http://prometheus.monitoring:9090" $w.name) -}}
{{- end -}}
{{- $all = append $all $w -}}
{{- end -}}
{{- toJson (dict "workers" $all) -}}
{{- end -}}

{{/* How many servers there are. */}}
{{- define "pawl.servers" -}}
{{- $one := not .Values.database.existingSecret -}}
{{- $replicas := .Values.server.replicas -}}
{{- if kindIs "invalid" $replicas -}}
{{- $replicas = ternary 1 2 $one -}}
{{- end -}}
{{- if and $one (gt (int $replicas) 1) -}}
{{- fail (printf "server.replicas is %d, and SQLite has one server: name a Secret with PostgreSQL's DSN in database.existingSecret, or leave server.replicas out" (int $replicas)) -}}
{{- end -}}
{{- int $replicas -}}
{{- end -}}

{{/* What no schema can refuse without showing it: values that hold a secret. */}}
{{- define "pawl.refuseSecrets" -}}
{{- range $name, $secret := dict "token.existingSecret" .Values.token.existingSecret "database.existingSecret" .Values.database.existingSecret "blobs.existingSecret" .Values.blobs.existingSecret "broker.existingSecret" .Values.broker.existingSecret -}}
{{- if not (regexMatch "^([a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?)?$" $secret) -}}
{{- fail (printf "%s is not the name of a Secret: make a Secret with the content (kubectl create secret generic NAME --from-literal=KEY=…) and give its name" $name) -}}
{{- end -}}
{{- end -}}
{{- if not .Values.token.existingSecret -}}
{{- fail "token.existingSecret is empty: servers in a cluster ask for a token; make one (kubectl create secret generic pawl-token --from-literal=token=$(openssl rand -hex 24)) and give its name" -}}
{{- end -}}
{{- range $name, $url := dict "blobs.url" .Values.blobs.url "broker.url" .Values.broker.url -}}
{{- if contains "@" $url -}}
{{- fail (printf "%s holds a user or a key, and values are no place for secrets: put them into a Secret, and name that in %s.existingSecret" $name (splitList "." $name | first)) -}}
{{- end -}}
{{- end -}}
{{- range .Values.workers -}}
{{- if contains "@" (.server | default "") -}}
{{- fail (printf "workers: the server of %s holds a user or a password, and values are no place for secrets" .name) -}}
{{- end -}}
{{- end -}}
{{- if hasKey .Values.runs.networks "none" -}}
{{- fail "runs.networks has the name none, which means no network: give it another" -}}
{{- end -}}
{{- end -}}
