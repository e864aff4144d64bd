# make test checks everything: vet and lint, all tests with the race detector, the fuzz targets over some thousands of inputs each,
# and the builds for the systems that Pawl runs on. It needs Go; with a C compiler the race detector is on, and what tests
# need beside that (python3, bash, node, promtool, chromium, PostgreSQL) is skipped where it is absent; scripts/services says how PostgreSQL is
# found or installed.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

GO ?= go
MODULE := github.com/pawl-run/pawl
FUZZTIME ?= 10000x
# Few packages at a time: their tests start processes and measure time. With two at a time two processors are idle while both wait for servers that they
# have killed.
PARALLEL ?= 3

# Everything but the race detector is compiled without C, as bin/pawl is: on a new machine each setting is compiled anew from the standard library on, for
# which go vet took 265 s on two processors that did other work as well. The programs that tests build are compiled in the same way.
export CGO_ENABLED := 0

# The race detector is C. SQLite is compiled without it: it is C that was translated to Go, in which the detector finds no race of Pawl's, and with it four tests
# of internal/store/sqlite (Reopen, Upgrade, Views, Unreadable) took 9.2 s of processor time, without it 0.8 s.
RACE := $(shell command -v gcc >/dev/null 2>&1 && echo "-race -gcflags=modernc.org/...=-race=false")
# These only compute, without goroutines or locks: with the race detector their tests took 94 s of processor time, without it less than 20 s.
PURE := ./internal/replay ./internal/schedule
# A program with the race detector sleeps for a second before it exits, so that goroutines that still run can be found out. The tests of internal/cli start some
# hundreds: 1.1 s each for `pawl version`, 0.12 s without the sleep.
export GORACE := atexit_sleep_ms=0

# Of make chaos: how often a process is taken down, the seed of the schedule (0: one of its own, printed), how many schedules fire and how
# many hooks come each second, how long work goes on beside retention, and how long plain work goes on beside the worst that another client can submit, on each store.
CYCLES ?= 200
SEED ?= 0
BEATS ?= 500
HOOKS ?= 50
SOAK ?= 17m
NEIGHBOUR ?= 5m

.PHONY: build test vet lint lint-page vulncheck unit page soak-ui chart cluster kubernetes calendar fuzz chaos cross bench bench-peers picture

build: ## bin/pawl
	$(GO) build -trimpath -o bin/pawl ./cmd/pawl

# The tests on a cluster wait for nine tenths of their time: beside them run the two that compute.
test: vet lint cross unit page
	$(MAKE) --no-print-directory -j 3 --output-sync=target chart cluster fuzz

# For arm64 the packages that have code for one architecture are compiled; the others would be the Kubernetes client and its like once more.
vet:
	$(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	GOOS=linux GOARCH=arm64 $(GO) vet ./internal/runtime/sandbox/... ./internal/runtime/kubernetes/pod/... ./cmd/pawl-pod
	test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run gofmt -w on these"; exit 1; }

lint: bin/staticcheck lint-page
	bin/staticcheck ./...

# The types and the tests of the page's modules. TypeScript is no dependency of the build: npm brings the version of web/package.json, which
# needs no other package, where there is npm and it reaches its registry.
lint-page:
	@if command -v node >/dev/null; then node --test --test-reporter=dot web/test/*.test.js; \
	else echo "no node here (Debian's package nodejs has it): the modules of the web page are NOT TESTED"; fi
	@if [ ! -x web/node_modules/.bin/tsc ] && command -v npm >/dev/null; then \
		npm install --prefix web --silent --no-audit --no-fund --no-package-lock --fetch-retries=1 --fetch-timeout=20000 || echo "npm cannot install TypeScript here"; fi
	@tsc=$$(command -v web/node_modules/.bin/tsc || command -v tsc || true); \
	if [ -n "$$tsc" ]; then "$$tsc" -p web; \
	else echo "no tsc here (npm install in web/ brings it): the types of the web page are NOT TESTED"; fi

# The programs that check and test are dependencies of tools/go.mod, so that every machine builds the same versions of them.
bin/staticcheck: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck

bin/gotestsum: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../bin/gotestsum gotest.tools/gotestsum

bin/govulncheck: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../bin/govulncheck golang.org/x/vuln/cmd/govulncheck

# govulncheck reads its database over the network before it loads a package, and exits with 1 where it cannot; with 3 where it finds something.
vulncheck: bin/govulncheck ## known vulnerabilities in what Pawl calls; says so where the database (GOVULNDB) cannot be reached
	@code=0; log=$$(bin/govulncheck ./... 2>&1) || code=$$?; echo "$$log"; \
	if [ "$$code" = 1 ] && grep -q "fetching vulnerabilities" <<<"$$log"; then echo "the vulnerability database cannot be reached here: known vulnerabilities are NOT CHECKED"; \
	else exit "$$code"; fi

unit:
	@test -n "$(RACE)" || echo "no C compiler here: the race detector is off"
	@command -v promtool >/dev/null || echo "no promtool here (Debian's package prometheus has it): that the alerts fire is NOT TESTED"
	# Vet has been run by make vet. The tests wait for a third of the time, in which the simulation
	# runs its 2,000 seeds and its planted bugs without the race detector: it only computes, at the lowest priority.
	$(if $(RACE),$(GO) test -vet=off -timeout 10m $(PURE))
	mkdir -p bin; simulation=; $(if $(RACE),nice -n 19 $(GO) test -vet=off -timeout 40m ./e2e/simulation >bin/simulation.log 2>&1 & simulation=$$!;) \
	packages=$$($(GO) list ./... $(if $(RACE),| grep -v -x$(foreach p,$(PURE), -e $(patsubst ./%,$(MODULE)/%,$(p))))); \
	unit=0; PAWL_SERVICES_FSYNC=off $(if $(RACE),CGO_ENABLED=1) scripts/with-services $(GO) test $(RACE) -vet=off -timeout 25m -p $(PARALLEL) $$packages || unit=$$?; \
	if [ -n "$$simulation" ]; then wait $$simulation || unit=$$?; cat bin/simulation.log; fi; exit $$unit

page: ## the web page in Chromium against a real server; skipped where chromium is not
	cd e2e/browser && $(GO) vet ./... && ../../scripts/with-services $(GO) test -vet=off -count=1 -parallel 3 -timeout 20m ./...

soak-ui: ## four tabs of the web page, open for an hour on what changes all the time, and before it fifty tabs on the list for a minute, and one beside 167 executions a second
	cd e2e/browser && ../../scripts/with-services $(GO) test -count=1 -timeout 1h -parallel 1 -run 'TestCrowd|TestListAtPace' -v . -soak 1m -crowd 50
	cd e2e/browser && ../../scripts/with-services $(GO) test -count=1 -timeout 2h -run TestSoak -v . -soak 1h

chart: ## the Helm chart, by Helm's own library, which is compiled first (2 minutes, once); skipped where that cannot be downloaded
	@if (cd e2e/chart && $(GO) list -deps -test . >/dev/null); then \
		cd e2e/chart && $(GO) vet . && $(GO) test -vet=off -count=1 -timeout 10m .; \
	else echo "Helm's modules cannot be downloaded here: the chart is NOT TESTED"; test -z "$$CI"; fi

cluster: ## the suite of runtimes, and parts that are killed, on a real control plane and kubelet; skipped where make kubernetes has not built them, except in CI
	@if ! scripts/kubernetes allowed; then echo "No kubelet can be run here: the Kubernetes runtime on a real cluster is NOT TESTED"; \
	elif [ -n "$$CI" ] || scripts/services has-kubernetes; then \
		PAWL_SERVICES_KUBERNETES=only scripts/with-services sh -c 'test -n "$$PAWL_TEST_KUBERNETES" && \
			$(GO) test -vet=off -count=1 -timeout 20m -run "TestConformance$$|TestTakenDown$$" ./internal/runtime/kubernetes'; \
	else echo "Kubernetes has not been built here (make kubernetes does it, in 9 minutes): its runtime on a real cluster is NOT TESTED"; fi

kubernetes: ## the Kubernetes runtime, and the chart, on a real control plane and kubelet, as root: builds Kubernetes first (9 minutes of two processors, once), the tests take 8 minutes more
	PAWL_SERVICES_KUBERNETES=only scripts/with-services sh -c '$(GO) test -count=1 -timeout 20m -p 1 ./internal/runtime/kubernetes/... ./cmd/pawl-kubernetes && \
		cd e2e/chart && $(GO) test -count=1 -timeout 20m -run TestCluster .'

calendar: ## nominal times against the clocks of every zone, minute by minute, 2015 to 2040; make test does it for three years
	$(GO) test ./internal/schedule -count=1 -run TestYears -v -timeout 12h -whole-calendar

chaos: ## three servers, four workers and PostgreSQL, taken down 200 times, and twice more with Redis and with RabbitMQ between them, 17 minutes of work beside retention, and 10 beside hostile work; make test does all for seconds
	scripts/with-services $(GO) test ./e2e/chaos -run TestChaos -v -timeout 2h -chaos.long -chaos.cycles $(CYCLES) -chaos.seed $(SEED) -chaos.soak $(SOAK) -chaos.beats $(BEATS) -chaos.hooks $(HOOKS)
	for broker in redis rabbitmq; do scripts/with-services $(GO) test ./e2e/chaos -run 'TestChaos$$' -v -timeout 2h -chaos.long -chaos.broker $$broker -chaos.cycles $(CYCLES) -chaos.seed $(SEED) || exit 1; done
	scripts/with-services $(GO) test ./internal/handoff/handofftest -run TestKilledAgainAndAgain -v -timeout 1h -broker.noops 100000 -broker.kills 10 -broker.again 3s
	scripts/with-services $(GO) test ./e2e/neighbour -v -timeout 1h -neighbour.for $(NEIGHBOUR) -neighbour.late 1s -neighbour.seed $(SEED)

fuzz:
	scripts/fuzz $(FUZZTIME)

# For the systems that Pawl runs on. One architecture each: the others differ in internal/runtime only, which
# vet compiles.
cross:
	$(GO) build ./...
	GOOS=darwin GOARCH=arm64 $(GO) build ./...

bench: build ## the figures of the README
	scripts/figures bin/pawl

bench-peers: ## Pawl beside River, DBOS, go-workflows, Restate and Temporal on one PostgreSQL, in one table
	scripts/with-services sh -c 'cd bench && $(GO) run .'

picture: build ## the pictures of the README, from a real run
	scripts/picture bin/pawl
	scripts/picture-page bin/pawl
