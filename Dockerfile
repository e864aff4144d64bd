# Pawl with what evaluations in Python and shell need. Other languages: build on top of it and install their tools.
FROM golang:1.26-trixie AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w -X github.com/pawl-run/pawl/internal/cli/app.release=$VERSION" -o /pawl ./cmd/pawl

# docker build --target pod: the helper that runtime kubernetes has in each pod (docs/kubernetes.md).
FROM build AS build-kubernetes
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w" -o /pawl-pod ./cmd/pawl-pod && \
    CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w -X github.com/pawl-run/pawl/internal/cli/app.release=$VERSION" -o /pawl-kubernetes ./cmd/pawl-kubernetes
FROM scratch AS pod
COPY --from=build-kubernetes /pawl-pod /pawl-pod

# docker build --target kubernetes: a worker with that runtime.
FROM debian:trixie-slim AS kubernetes
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build-kubernetes /pawl-kubernetes /usr/local/bin/pawl-kubernetes
ENV PAWL_STATE_DIR=/var/lib/pawl
VOLUME /var/lib/pawl
ENTRYPOINT ["pawl-kubernetes"]

# docker build --target server: servers alone, without a shell or an interpreter.
FROM scratch AS server
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /pawl /usr/local/bin/pawl
ENV PATH=/usr/local/bin PAWL_STATE_DIR=/var/lib/pawl
VOLUME /var/lib/pawl
EXPOSE 7411
ENTRYPOINT ["pawl"]
CMD ["server", "--no-worker", "--listen", "0.0.0.0:7411"]

FROM debian:trixie-slim AS worker
RUN apt-get update && apt-get install -y --no-install-recommends python3 ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /pawl /usr/local/bin/pawl
ENV PAWL_STATE_DIR=/var/lib/pawl
VOLUME /var/lib/pawl
EXPOSE 7411
ENTRYPOINT ["pawl"]
CMD ["server", "--listen", "0.0.0.0:7411"]
