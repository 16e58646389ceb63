# Everything here is plain Go; `make check` is what a change must pass. See CONTRIBUTING.md.

FUZZTIME    ?= 60s
CHAOSROUNDS ?= 10
CHAOSKILLS  ?= 200
CHAOSHTTP   ?= 100
CHAOSLOAD   ?= 30s
ARGS        ?= --help

# A build is a function of the sources: no paths, no C compiler. The version is the commit, read back with debug.ReadBuildInfo.
BUILD = CGO_ENABLED=0 go build -trimpath -buildvcs=auto -ldflags='-s -w'

.PHONY: build run test race fuzz bench golden chaos check fmt lint tidy layers cross

build:
	$(BUILD) -o bin/rind ./cmd/rind

run:
	go run ./cmd/rind $(ARGS)

test:
	go test ./...

race:
	CGO_ENABLED=1 go test -race ./...

# Every fuzz target of the tree, one after the other: `go test -fuzz` takes only one at a time.
fuzz:
	@grep -rnoE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*' . | sed -E 's|/[^/]*:[0-9]+:func | |' | sort -u | \
	while read -r dir name; do \
		echo "== $$dir $$name ($(FUZZTIME))"; \
		go test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "$$dir" || exit 1; \
	done

# The goals of docs/performance.md as ratios within this run, then the benchmarks of each package.
bench:
	go test -count=1 -timeout 20m -run '^(TestReport|TestLongSessions|TestManySessions|TestServe)$$' ./internal/bench -report -v | grep -v '^\(===\|---\|PASS\|ok\)'
	go test -run '^$$' -bench . -benchmem ./...

# Rewrites the golden files of every package that has an -update flag. Read the difference like code.
golden:
	@grep -rlE --include='*_test.go' 'flag\.Bool\("update"' . | xargs -r -n1 dirname | sort -u | \
	while read -r dir; do echo "== $$dir"; go test -count=1 "$$dir" -update || exit 1; done

# Tests named TestChaos… play faults at random; `make test` runs each once, with a few kills; this is 200 kills of each, 100 of `rind serve`, and two processes
# at work on one store for CHAOSLOAD. CHAOSROUNDS=20 CHAOSKILLS=600 makes it 1,000 kills in all.
chaos:
	go test -run '^TestChaos' -skip '^TestChaos(Tools|Processes|HTTP)' -count=$(CHAOSROUNDS) -timeout 60m ./...
	go test -run '^TestChaosHTTP' -count=1 -timeout 60m -v ./cmd/rind -httpkills $(CHAOSHTTP)
	go test -run '^TestChaosTools' -count=1 -timeout 60m -v ./cmd/rind -built -kills $(CHAOSKILLS)
	go test -run '^TestChaosProcesses' -count=1 -timeout 60m -v ./cmd/rind -load $(CHAOSLOAD)

check: fmt lint tidy layers cross test

fmt:
	@out=$$(go tool gofumpt -l .) || exit 1; if [ -n "$$out" ]; then echo "not gofumpt-clean:"; echo "$$out"; exit 1; fi

lint:
	go vet ./...
	go tool staticcheck ./...

# Offline unless TIDYPROXY names a proxy: what the module cache does not hold is not asked for.
TIDYPROXY ?= off
tidy:
	@if out=$$(GOFLAGS=-mod=mod GOPROXY=$(TIDYPROXY) go mod tidy -diff 2>&1); then :; \
	elif echo "$$out" | grep -q '^diff '; then echo "go.mod or go.sum is not tidy:"; echo "$$out" | head -n 40; exit 1; \
	else echo "tidy: not checked, a module that only tidying needs cannot be had"; fi

layers:
	go test ./internal/archtest

cross:
	GOOS=windows CGO_ENABLED=0 go build ./...
	GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 go build ./...
