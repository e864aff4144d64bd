# Pawl with what evaluations in Python and shell need. Other languages: build on top of it and install their tools.
FROM golang:1.26-trixie AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags="-s -w -X github.com/pawl-run/pawl/internal/cli.release=$VERSION" -o /pawl ./cmd/pawl

FROM debian:trixie-slim
RUN apt-get update && apt-get install -y --no-install-recommends python3 ca-certificates && rm -rf /var/lib/apt/lists/*
COPY --from=build /pawl /usr/local/bin/pawl
ENV PAWL_STATE_DIR=/var/lib/pawl
VOLUME /var/lib/pawl
EXPOSE 7411
ENTRYPOINT ["pawl"]
CMD ["server", "--listen", "0.0.0.0:7411"]
