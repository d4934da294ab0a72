# One target per program:
#   docker build --target manager -t manager .
#
# The programs are static, so that the images hold nothing else: no shell, no
# package manager, and no user but nonroot (65532).

FROM golang:1.26 AS build
WORKDIR /src
ENV CGO_ENABLED=0 GOMODCACHE=/cache/mod GOCACHE=/cache/build

# The modules change less often than the sources.
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/cache go mod download

COPY . .
ARG VERSION=v0.0.0-gunknown
# The manager has our version, the components of Kubernetes have theirs with ours behind it.
RUN --mount=type=cache,target=/cache \
    base=k8s.io/component-base/version && \
    kubernetes=$(go list -m -f '{{.Version}}' k8s.io/kubernetes) && \
    minor=$(echo "$kubernetes" | cut -d. -f2) && \
    go build -trimpath -o /out/ -ldflags "-s -w -X $base.gitVersion=$VERSION" ./cmd/manager && \
    go build -trimpath -o /out/ -ldflags "-s -w -X $base.gitVersion=$kubernetes+wva.${VERSION#v} -X $base.gitMajor=1 -X $base.gitMinor=$minor" \
        ./cmd/scheduler ./cmd/playground

# The scheduler's image may have another Kubernetes than the playground's:
#   docker build --target scheduler --build-arg KUBERNETES=1.37 -t scheduler .
ARG KUBERNETES=""
RUN --mount=type=cache,target=/cache \
    mkdir /other && \
    if [ -z "$KUBERNETES" ]; then \
        cp /out/scheduler /other/; \
    else \
        base=k8s.io/component-base/version && \
        other="-modfile=cmd/scheduler/kubernetes-$KUBERNETES.mod -tags=kubernetes$KUBERNETES" && \
        kubernetes=$(go list $other -m -f '{{.Version}}' k8s.io/kubernetes) && \
        minor=$(echo "$kubernetes" | cut -d. -f2) && \
        go build $other -trimpath -o /other/ -ldflags "-s -w -X $base.gitVersion=$kubernetes+wva.${VERSION#v} -X $base.gitMajor=1 -X $base.gitMinor=$minor" \
            ./cmd/scheduler; \
    fi

FROM gcr.io/distroless/static-debian12:nonroot AS base
USER 65532:65532

FROM base AS manager
COPY --from=build /out/manager /manager
ENTRYPOINT ["/manager"]

FROM base AS scheduler
COPY --from=build /other/scheduler /scheduler
ENTRYPOINT ["/scheduler"]

# The playground starts the other two, which it finds next to itself.
FROM base AS playground
WORKDIR /home/nonroot
COPY --from=build /out/ /
COPY manifests/ /home/nonroot/manifests/
ENTRYPOINT ["/playground", "demo"]
