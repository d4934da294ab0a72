# Every target is one script of hack/ or one program of bin/; this page only names
# them. "make" alone lists what there is.

.DEFAULT_GOAL := help
.PHONY: help build test lint verify update docs demo playground-empty bench soak mutate ablate image render release clean

# Settings of the demo; an empty one leaves the program's own default.
#   DURATION  how long there is traffic                (3m)
#   TRACE     file of requests for the 8B model        (synthetic traffic)
#   RATE      send every request of the trace so often (1)
#   TAIL      how long to watch without traffic        (60s)
#   STARTUP   start-up time of a model server          (15s)
#   MODE      capacity-only: size by saturation alone   (hybrid)
#   MODELS    1: the 8B model alone                    (2)
#   METRICS   pods: the autoscaler scrapes model servers itself (prometheus)
#   LLAMASTACK  1: requests for the 8B model go through a Llama Stack server
#   REPORT    where the report goes                    (demo-report.json)
#   REPORT_HTML  where it goes as a page with pictures (demo-report.html)
#   KEEP      1: leave it running until Ctrl-C
#   LOGS      directory for the components' logs
#   SEED      decides the random numbers of the traffic
DURATION ?=
TRACE ?=
RATE ?=
TAIL ?=
STARTUP ?=
MODE ?=
METRICS ?=
MODELS ?=
LLAMASTACK ?=
REPORT ?=
REPORT_HTML ?=
KEEP ?=
LOGS ?=
SEED ?=

# $(call setting,RATE,rate) is --rate='...', or nothing; any file name is safe.
setting = $(if $(value $(1)),--$(2)='$(subst ','\'',$(value $(1)))')

# KUBERNETES=1.37: "make build" builds a second scheduler, bin/scheduler-1.37, of that
# Kubernetes, and "make image" the scheduler's image of it.
KUBERNETES ?=

# IMAGE_PREFIX and IMAGE_TAG name what "make image" builds.
IMAGE_PREFIX ?= workload-variant-autoscaler
IMAGE_TAG ?= dev

# What "make release" builds: VERSION is that of the release, DOWNLOADS where its files will
# be found; IMAGE_PREFIX names the images in its chart. PLATFORMS are those of the programs
# (linux/amd64 linux/arm64 darwin/amd64 darwin/arm64).
VERSION ?=
PLATFORMS ?=
DOWNLOADS ?= https://downloads.example/workload-variant-autoscaler

# What "make render" prints: VALUES is a file of values, NAME and NAMESPACE are those of
# the release.
VALUES ?=
NAME ?=
NAMESPACE ?=

# PKG is the package that "make mutate" changes, pkg/decision/rate, or one file of one; with
# SAMPLE it tries one change in so many, always the same ones.
PKG ?=
SAMPLE ?=

# RULE names the rules that "make ablate" switches off, with commas between them (all). SEEDS
# is how many scenarios of the closed loop it plays with each (600). DATA is as below.
RULE ?=
SEEDS ?=

# WHAT is the benchmark that "make bench" runs; without one it lists them. DATA is a folder
# with the published data; nothing of it is part of this project.
#   DATA   where the data lie
#   SWEEP  another sweep of measurements for serving
#   RUN    folder of another recorded run for simulation
#   LINK   GB/s that nccl-tests measures between the devices of RUN  (as published)
#   PAIRS  pairs of runs of scheduler                  (6)
#   VARIANTS, REPLICAS, NODES  the cluster of manager  (1000, 10 each, 1000)
#   SPEED  1: autoscaling replays one hour at the full rate and tells its time
#   QUICK  1: autoscaling in five minutes: few traces, few rivals, two seeds
#   RECIPES  1: autoscaling judges against what others ship, and tunes nothing
#   RUNS   file in which autoscaling notes its runs, to go on after an interruption
#   RIVALS such a file of another commit, of which autoscaling takes over the runs of the rivals
WHAT ?=
DATA ?=
SWEEP ?=
RUN ?=
LINK ?=
PAIRS ?=
VARIANTS ?=
REPLICAS ?=
NODES ?=
SPEED ?=
QUICK ?=
RECIPES ?=
RUNS ?=
RIVALS ?=

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the programs into bin/ (KUBERNETES); the first time takes minutes
	@hack/build.sh '$(KUBERNETES)'

test: build ## run every test, those on a local cluster included
	@hack/test.sh

lint: ## run the linters, the import law among them
	@hack/verify-lint.sh

verify: ## check everything that can be checked without running it; writes nothing
	@hack/check-prerequisites.sh
	@hack/verify.sh

update: ## write everything that is generated: code, CRD, chart, modules, format
	@hack/check-prerequisites.sh
	@hack/update.sh

docs: ## build the site of the documentation into bin/site (needs Node.js)
	@hack/docs.sh

demo: build ## run the main job on a whole cluster (DURATION TRACE RATE TAIL STARTUP MODE METRICS MODELS LLAMASTACK REPORT REPORT_HTML KEEP LOGS SEED)
	@exec bin/playground demo \
		$(call setting,DURATION,duration) $(call setting,TRACE,trace) $(call setting,RATE,rate) \
		$(call setting,TAIL,tail) $(call setting,STARTUP,startup) $(call setting,MODE,mode) $(call setting,METRICS,metrics) $(call setting,MODELS,models) $(call setting,LLAMASTACK,llamastack) $(call setting,REPORT,report) \
		$(call setting,REPORT_HTML,report-html) $(call setting,KEEP,keep) $(call setting,LOGS,logs) $(call setting,SEED,seed)

playground-empty: build ## run a cluster with nothing installed, to try things by hand (STARTUP LOGS)
	@exec bin/playground empty $(call setting,STARTUP,startup) $(call setting,LOGS,logs)

bench: $(if $(filter manager scheduler,$(WHAT)),build) ## measure WHAT and write bench-WHAT.json; alone it lists what can be measured, with its settings
	@hack/check-prerequisites.sh
	@go build -C test/performance -o ../../bin/bench .
	@bin/bench $(WHAT) $(call setting,DATA,data) $(call setting,SWEEP,sweep) $(call setting,RUN,run) $(call setting,LINK,link) \
		$(call setting,PAIRS,pairs) $(call setting,VARIANTS,variants) $(call setting,REPLICAS,replicas) $(call setting,NODES,nodes) \
		$(call setting,SPEED,speed) $(call setting,QUICK,quick) $(call setting,RECIPES,recipes) $(call setting,RUNS,runs) $(call setting,RIVALS,rivals) \
		$(if $(filter autoscaling,$(WHAT)),--commit "$$(git describe --always --dirty 2>/dev/null)")

soak: build ## a whole cluster under load while its parts are killed at random (DURATION SEED LOGS); writes soak.json
	@go run ./test/soak $(call setting,DURATION,duration) $(call setting,SEED,seed) $(call setting,LOGS,logs)

mutate: ## change a package in one place at a time and say what its tests do not notice (PKG SAMPLE)
	@hack/mutate.sh '$(PKG)' '$(SAMPLE)'

ablate: ## switch off one rule of the decision at a time and say what it buys (RULE SEEDS DATA); about a minute each
	@go run ./test/ablation $(call setting,RULE,rule) $(call setting,SEEDS,seeds) $(call setting,DATA,data)

image: ## build the container images of the manager, the scheduler and the playground (needs Docker) (KUBERNETES)
	@hack/image.sh '$(IMAGE_PREFIX)' '$(IMAGE_TAG)' '$(KUBERNETES)'

render: ## print what the chart gives, without helm (VALUES NAME NAMESPACE)
	@go build -C test/chart -o ../../bin/render ./render
	@bin/render $(call setting,VALUES,values) $(call setting,NAME,name) $(call setting,NAMESPACE,namespace)

release: ## build what a release consists of into dist/ (VERSION IMAGE_PREFIX DOWNLOADS PLATFORMS)
	@hack/check-prerequisites.sh
	@hack/release.sh '$(VERSION)' '$(IMAGE_PREFIX)' '$(DOWNLOADS)' '$(PLATFORMS)'

clean: ## remove what the build and the demo left
	rm -rf bin dist demo-logs demo-report.json demo-report.html coverage.out soak.json bench-*.json bench-*.html
