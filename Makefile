# Run `make help` for the list.

GO ?= go
FUZZTIME ?= 10s

# In CI nothing comes from the cache of test results. The end-to-end tests take minutes on a machine that has other work.
TESTFLAGS ?= -timeout=20m $(if $(CI),-count=1)

# Where goroutines share state: these packages are tested once more under the race detector.
RACE := gate engine server telemetry auth remote
RACE_DIRS := $(wildcard $(addprefix internal/,$(RACE)))
RACE_PACKAGES := $(patsubst %,./%/...,$(RACE_DIRS))

.PHONY: help build test lint bench fuzz fmt generate

help:           ## this list
	@sed -n 's/^\([a-z]*\):[^#]*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

build:          ## bin/weir
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/weir ./cmd/weir

test: lint      ## everything: lint, all tests on SQLite and PostgreSQL, real clients, fuzz seeds, hub and backend, the race detector
	scripts/with-clients scripts/with-postgres sh -ec '$(GO) test $(TESTFLAGS) ./...; WEIR_TEST_SPLIT=1 $(GO) test $(TESTFLAGS) ./internal/e2e $(if $(RACE_PACKAGES),; $(GO) test $(TESTFLAGS) -race $(RACE_PACKAGES))'

lint:           ## gofumpt, go vet, staticcheck
	@files=$$($(GO) tool gofumpt -l .) && if [ -n "$$files" ]; then printf 'not formatted (make fmt):\n%s\n' "$$files" >&2; exit 1; fi
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

bench:          ## the speed bars against the yardsticks, paired in one run, with a table of ratios
	scripts/with-postgres $(GO) run ./cmd/weir bench bars

fuzz:           ## each fuzz target for FUZZTIME (10s)
	GO=$(GO) scripts/fuzz $(FUZZTIME)

fmt:            ## format the Go files
	$(GO) tool gofumpt -w .

generate:       ## write the demo's data again
	$(GO) run ./demo/gen
