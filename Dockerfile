# One target per program:
#   docker build --target manager -t manager .
#
# The programs are static, so that the images hold nothing else: no shell, no
# package manager, and no user but nonroot (65532).

# The version that the programs tell.
ARG VERSION=v0.0.0-gunknown

# Each program is built in a stage of its own, and a target builds only the stages that it takes from:
# the manager's compiles nothing of Kubernetes itself, which the other two link.
FROM golang:1.26 AS sources
WORKDIR /src
ENV CGO_ENABLED=0 GOMODCACHE=/cache/mod GOCACHE=/cache/build
COPY . .

# The manager has our version, the components of Kubernetes have theirs with ours behind it.
FROM sources AS build-manager
ARG VERSION
RUN --mount=type=cache,target=/cache \
    go build -trimpath -o /out/ -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$VERSION" ./cmd/manager

# The scheduler's image may have another Kubernetes than the playground's:
#   docker build --target scheduler --build-arg KUBERNETES=1.37 -t scheduler .
FROM sources AS build-scheduler
ARG VERSION
ARG KUBERNETES=""
RUN --mount=type=cache,target=/cache \
    base=k8s.io/component-base/version && \
    other=${KUBERNETES:+"-modfile=cmd/scheduler/kubernetes-$KUBERNETES.mod -tags=kubernetes$KUBERNETES"} && \
    kubernetes=$(go list $other -m -f '{{.Version}}' k8s.io/kubernetes) && \
    minor=$(echo "$kubernetes" | cut -d. -f2) && \
    go build $other -trimpath -o /out/ -ldflags "-s -w -X $base.gitVersion=$kubernetes+wva.${VERSION#v} -X $base.gitMajor=1 -X $base.gitMinor=$minor" \
        ./cmd/scheduler

FROM sources AS build-playground
ARG VERSION
RUN --mount=type=cache,target=/cache \
    base=k8s.io/component-base/version && \
    kubernetes=$(go list -m -f '{{.Version}}' k8s.io/kubernetes) && \
    minor=$(echo "$kubernetes" | cut -d. -f2) && \
    go build -trimpath -o /out/ -ldflags "-s -w -X $base.gitVersion=$kubernetes+wva.${VERSION#v} -X $base.gitMajor=1 -X $base.gitMinor=$minor" \
        ./cmd/scheduler ./cmd/playground

FROM gcr.io/distroless/static-debian12:nonroot AS base
USER 65532:65532

FROM base AS manager
COPY --from=build-manager /out/manager /manager
ENTRYPOINT ["/manager"]

FROM base AS scheduler
COPY --from=build-scheduler /out/scheduler /scheduler
ENTRYPOINT ["/scheduler"]

# The playground starts the other two, which it finds next to itself.
FROM base AS playground
WORKDIR /home/nonroot
COPY --from=build-manager /out/manager /
COPY --from=build-playground /out/ /
COPY manifests/ /home/nonroot/manifests/
ENTRYPOINT ["/playground", "demo"]
