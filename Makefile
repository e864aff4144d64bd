# The tests come in three tiers: make check while working, make test before a commit, make test-all before a release. They need Go; with a C
# compiler the race detector is on, and what tests need beside that (python3, bash, node, promtool, chromium, PostgreSQL) is skipped where it is
# absent, and named at the end; scripts/services says how services are found or installed. docs/contributing.md says what is in which tier.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := build

GO ?= go
FUZZTIME ?= 10000x
export GO FUZZTIME

# Everything but the race detector is compiled without C, as bin/pawl is: on a new machine each setting is compiled anew from the standard library on, for
# which go vet took 265 s on two processors that did other work as well. The programs that tests build are compiled in the same way.
export CGO_ENABLED := 0

# Of make chaos: how often a process is taken down, the seed of the schedule (0: one of its own, printed), how many schedules fire and how
# many hooks come each second, how long work goes on beside retention, and how long plain work goes on beside the worst that another client can submit, on each store.
CYCLES ?= 200
SEED ?= 0
BEATS ?= 500
HOOKS ?= 50
SOAK ?= 17m
NEIGHBOUR ?= 5m

# What make test-all adds to make test, in parts that CI takes in turn: scripts/tests says what is in each, scripts/later.txt why.
SLICES := simulation page chaos cluster fuzz long

.PHONY: build check test test-all $(addprefix slice-,$(SLICES)) vet lint lint-page vulncheck soak-ui kubernetes calendar fuzz chaos cross bench bench-guard bench-peers picture wheels

# With the flags of go run and of the tests, so that nothing is compiled twice: -trimpath changes each package and the standard library with them.
build: ## bin/pawl
	$(GO) build -o bin/pawl ./cmd/pawl

wheels: ## dist/: the Python package with pawl in it, one wheel for each platform, and its source distribution; needs no network
	sdk/python/scripts/wheels

check: vet lint lint-page bin/gotestsum ## while working: vet, lint, the rules, SQLite and the page's modules, in 2 minutes
	scripts/tests check

test: vet lint lint-page bin/gotestsum ## before a commit: every package with the race detector on real services, the page's main tests, the chart
	PAWL_SERVICES_FSYNC=off PAWL_SERVICES_S3=off scripts/with-services scripts/tests test

test-all: test ## before a release: make test, and all that it leaves out
	for slice in $(SLICES); do $(MAKE) --no-print-directory slice-$$slice || failed=1; done; test -z "$${failed:-}"

slice-simulation slice-page: slice-%: bin/gotestsum
	PAWL_SERVICES_FSYNC=off PAWL_SERVICES_S3=off scripts/with-services scripts/tests $*

slice-chaos slice-long: slice-%: bin/gotestsum
	PAWL_SERVICES_FSYNC=off scripts/with-services scripts/tests $*

slice-fuzz: cross bin/gotestsum
	scripts/tests fuzz

slice-cluster: bin/gotestsum ## the Kubernetes runtime on a real control plane and kubelet, which are built first (9 minutes, once)
	@if scripts/kubernetes allowed; then PAWL_SERVICES_KUBERNETES=only scripts/with-services scripts/tests cluster; \
	else echo "No kubelet can be run here: the Kubernetes runtime on a real cluster is NOT TESTED"; fi

vet:
	$(GO) vet ./...
	cd e2e/browser && $(GO) vet ./...
	test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo "run gofmt -w on these"; exit 1; }

lint: bin/golangci-lint lint-page
	bin/golangci-lint run ./...

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
bin/golangci-lint: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../bin/golangci-lint github.com/golangci/golangci-lint/v2/cmd/golangci-lint

bin/gotestsum: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../bin/gotestsum gotest.tools/gotestsum

bin/govulncheck: tools/go.mod tools/go.sum
	cd tools && $(GO) build -o ../bin/govulncheck golang.org/x/vuln/cmd/govulncheck

# govulncheck reads its database over the network before it loads a package, and exits with 1 where it cannot; with 3 where it finds something.
vulncheck: bin/govulncheck ## known vulnerabilities in what Pawl calls; says so where the database (GOVULNDB) cannot be reached
	@code=0; log=$$(bin/govulncheck ./... 2>&1) || code=$$?; echo "$$log"; \
	if [ "$$code" = 1 ] && grep -q "fetching vulnerabilities" <<<"$$log"; then echo "the vulnerability database cannot be reached here: known vulnerabilities are NOT CHECKED"; \
	else exit "$$code"; fi

soak-ui: ## four tabs of the web page, open for an hour on what changes all the time, and before it fifty tabs on the list for a minute, and one beside 167 executions a second
	cd e2e/browser && ../../scripts/with-services $(GO) test -count=1 -timeout 1h -parallel 1 -run 'TestCrowd|TestListAtPace' -v . -soak 1m -crowd 50
	cd e2e/browser && ../../scripts/with-services $(GO) test -count=1 -timeout 2h -run TestSoak -v . -soak 1h

kubernetes: ## the Kubernetes runtime, and the chart, on a real control plane and kubelet, as root: builds Kubernetes first (9 minutes of two processors, once), the tests take 8 minutes more
	PAWL_SERVICES_KUBERNETES=only scripts/with-services sh -c '$(GO) test -count=1 -timeout 20m -p 1 ./internal/runtime/kubernetes/... ./cmd/pawl-kubernetes && \
		cd e2e/chart && $(GO) test -count=1 -timeout 20m -run TestCluster .'

calendar: ## nominal times against the clocks of every zone, minute by minute, 2015 to 2040; make test does it for three years
	$(GO) test ./internal/schedule -count=1 -run TestYears -v -timeout 12h -whole-calendar

chaos: ## three servers, four workers and PostgreSQL, taken down 200 times, and twice more with Redis and with RabbitMQ between them, 17 minutes of work beside retention, and 10 beside hostile work; make slice-chaos does all for seconds
	scripts/with-services $(GO) test ./e2e/chaos -run TestChaos -v -timeout 2h -chaos.long -chaos.cycles $(CYCLES) -chaos.seed $(SEED) -chaos.soak $(SOAK) -chaos.beats $(BEATS) -chaos.hooks $(HOOKS)
	for broker in redis rabbitmq; do scripts/with-services $(GO) test ./e2e/chaos -run 'TestChaos$$' -v -timeout 2h -chaos.long -chaos.broker $$broker -chaos.cycles $(CYCLES) -chaos.seed $(SEED) || exit 1; done
	scripts/with-services $(GO) test ./internal/handoff/handofftest -run TestBrokerKilledAgainAndAgain -v -timeout 1h -broker.noops 100000 -broker.kills 10 -broker.again 3s
	scripts/with-services $(GO) test ./e2e/neighbour -v -timeout 1h -neighbour.for $(NEIGHBOUR) -neighbour.late 1s -neighbour.seed $(SEED)

fuzz: ## every fuzz target over some thousands of new inputs
	scripts/fuzz $(FUZZTIME)

# For the systems that Pawl runs on. For arm64 the packages that have code for one architecture are compiled; the others would be the Kubernetes
# client and its like once more.
cross:
	GOOS=darwin GOARCH=arm64 $(GO) build ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	GOOS=linux GOARCH=arm64 $(GO) vet ./internal/runtime/sandbox/... ./internal/runtime/kubernetes/pod/... ./cmd/pawl-pod

bench: build ## the figures of the README
	scripts/figures bin/pawl

bench-guard: ## the published workloads of this commit and of the release, in turn, on one PostgreSQL: ratios, appended to bench/history.csv
	scripts/with-services scripts/bench-guard

bench-peers: ## Pawl beside River, DBOS, go-workflows, Restate and Temporal on one PostgreSQL, in one table
	scripts/with-services sh -c 'cd bench && $(GO) run .'

picture: build ## the pictures of the README, from a real run
	scripts/picture bin/pawl
	scripts/picture-page bin/pawl
