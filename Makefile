# Needs make and a Python of 3.11 or later; everything else comes from the lock files into a private venv.
#   make up                              the servers, at once
#   make test PYTHON=python3.13          another Python, in a venv of its own beside the first
#   make test ARGS="tests/wire -x"       part of the suite, in one process

SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
.SUFFIXES:
.DELETE_ON_ERROR:

ARGS ?=
COUNT ?= 120
COVERAGE ?=
RUNTIME ?= anyio
SECONDS ?= 60
SEED ?= 1
SEEDS ?= 1000
# Some of the time of a test is waiting, and each process collects all tests: one process more than there are cores.
WORKERS ?= $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)")
PARALLEL = -n $(WORKERS) --dist worksteal
UV ?= uv
UPGRADE ?=

# --- which Python, which venv -------------------------------------------------------------------------------------
# A candidate is run, not only looked up: version managers leave commands on the path that do not start.
is_good := -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
version := -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null

default_python := $(shell for python in python3.11 python3 python3.14 python3.13 python3.12; do \
	if $$python $(is_good); then echo $$python; break; fi; done)
ifeq ($(origin PYTHON),undefined)
PYTHON := $(or $(default_python),python3.11)
endif

VERSION := $(if $(shell $(PYTHON) $(is_good) && echo good),$(shell $(PYTHON) $(version)))
default_version := $(if $(default_python),$(shell $(default_python) $(version)))
VENV := .venv$(if $(filter-out $(default_version),$(VERSION)),-$(VERSION))
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check --no-input
STAMP := $(VENV)/.installed

# Programs and tests start hundreds of interpreters, and where the environment says that no bytecode is kept, each of
# them would compile the whole product anew: the suite would take twice its time.
unexport PYTHONDONTWRITEBYTECODE

# The folders of tests/ without a coverage gate; all others but the runtimes' own cover the core.
OTHER_TESTS = $(addprefix tests/,bench browser clients conformance fuzz loops servers)
WORLDS = tests/fuzz/test_simulation.py::test_the_worlds_of_many_seeds_hold
WITHOUT_WORLDS = --deselect $(WORLDS)

MEASURE = --cov=svc_proto --cov=runtimes --cov-branch --cov-report= $(addprefix --unmeasured=,$(OTHER_TESTS))

# What is about the core alone, and quick: values, tables, what is read and written.
QUICK = .venv-quick-$(VERSION)
QUICK_TESTS = $(addprefix tests/,basics machines schema test_purity.py) \
	$(addprefix --ignore=tests/,basics/test_certificate_pins.py schema/test_oauth_types.py) # they need more packages

# --- for people ---------------------------------------------------------------------------------------------------
.PHONY: help venv up demo demo-mcp test test-full test-rest hunts coverage gates quick check fuzz simulate mutants bench conformance release lock clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name text; do printf '%-11s %s\n' "$$name" "$$text"; done

venv: $(STAMP)-dev ## make or refresh the venv with everything for development

up: $(STAMP)-run ## start the servers (ARGS="..." is passed on)
	$(BIN)/python -m servers $(ARGS)

demo: $(STAMP)-run ## pair the reference phone and chat with it (RUNTIME=anyio|trio|uvloop|curio)
	$(BIN)/python -m clients.demo --runtime $(RUNTIME) $(ARGS)

demo-mcp: $(STAMP)-dev ## the official MCP client (from PyPI) opens an app and reads the screen of the reference phone
	$(BIN)/python -m tests.conformance.mcp_demo

# docs/explanation/testing-strategy.md says what runs where. WORKERS=0 runs all tests in one process, and so does a selection.
test: $(STAMP)-dev ## what a change must pass on a laptop, in two and a half minutes (ARGS="..." selects)
	$(BIN)/python -m pytest -q $(if $(strip $(ARGS)),$(ARGS),$(PARALLEL)) $(if $(COVERAGE),$(MEASURE))

test-full: $(STAMP)-dev ## everything: all loops, browsers, real programs, 300 worlds, storms, mutants
	$(BIN)/python -m pytest -q $(PARALLEL) --full $(WITHOUT_WORLDS)
	$(MAKE) --no-print-directory hunts

# CI runs `make COVERAGE=1 test gates test-rest hunts`: everything that `make test-full` runs, and the coverage gates.
test-rest: $(STAMP)-dev ## the tests that `make test` leaves out, but for the worlds
	$(BIN)/python -m pytest -q $(PARALLEL) --rest $(WITHOUT_WORLDS)

# The worlds take every core, so no other test runs beside them. Each kind of storm takes one core.
hunts: $(STAMP)-dev ## 300 simulated worlds, storms over several nodes, sampled mutants
	$(BIN)/python -m pytest -q --full $(WORLDS)
	$(BIN)/python -m fuzz.cluster.run --seeds 3 --first 500 --most-nodes 20 --sessions 20000 & large=$$!; \
		$(BIN)/python -m fuzz.cluster.run --seeds 20 --first 100; status=$$?; wait $$large && exit $$status
	$(BIN)/python -m fuzz.mutants --count 10 --seed $(SEED) --allow 2

# The folder of a test is the context of what it executes; imports, and programs that tests start, have none.
coverage: ## run the tests of `make test`, which the coverage gates count, and check the gates
	$(MAKE) --no-print-directory COVERAGE=1 test gates

gates: $(STAMP)-dev ## what was measured, by the tests of their own folders: the core 100 % of branches, the runtimes 90 %
	$(BIN)/python -m coverage report --include='svc_proto/*' --contexts='^(?!tests/runtimes$$)' --fail-under=100
	$(BIN)/python -m coverage report --include='runtimes/*' --contexts='^(tests/runtimes)?$$' --fail-under=90

quick: $(QUICK)/.installed ## part of the core's tests, in an environment of their own: for another Python (PYTHON=python3.13)
	$(QUICK)/bin/python -m pytest -q $(PARALLEL) $(QUICK_TESTS)

check: $(STAMP)-dev ## lint, formatting, types, layers, spelling, language
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy
	$(BIN)/lint-imports --no-logo
	$(BIN)/codespell
	$(BIN)/python scripts/check_language.py

fuzz: $(STAMP)-fuzz ## fuzz the core for SECONDS=60
	$(BIN)/python -m fuzz --seconds $(SECONDS) $(ARGS)

simulate: $(STAMP)-dev ## play SEEDS=1000 simulated worlds with faults on all cores (ARGS="--seed 7" plays one)
	$(BIN)/python -m fuzz.simulation.run --seeds $(SEEDS) $(ARGS)

mutants: $(STAMP)-dev ## make COUNT=120 small wrong changes to the core, drawn by SEED=1, and see which tests notice
	$(BIN)/python -m fuzz.mutants --count $(COUNT) --seed $(SEED) $(ARGS)

bench: $(STAMP)-bench ## run the benchmarks
	$(BIN)/python -m bench $(ARGS)

conformance: $(STAMP)-dev ## run the suites of others: Autobahn, Chromium, nghttp, ... (docs/reference/conformance.md)
	$(BIN)/python -m tests.conformance $(ARGS)

release: $(STAMP)-release ## build what would be published, and try it on every Python that is here; nothing is uploaded
	$(BIN)/python scripts/release.py $(ARGS)

lock: ## resolve the lock files anew (needs uv; UPGRADE=--upgrade takes newer versions)
	scripts/lock $(UV) $(UPGRADE)

clean: ## remove the venvs, caches and build results
	rm -rf .venv .venv-[0-9]* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
	rm -f .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --- installation -------------------------------------------------------------------------------------------------
# Layers in one venv, each with its stamp: `run`, `dev` (holds all of `run`), and on top of that `fuzz` and `bench`.
# The locks agree on every version that they share, so the order in which they are installed does not matter.
# `run` is the extra `serve` with the loops. The voice engines come with the first two where they have wheels.
# `build` comes first: what has to be built here is built with locked tools, hence no build isolation.

define install
	@echo "installing $(2) into $(VENV)"
	@$(PIP) install --require-hashes -r requirements/build.lock
	@$(PIP) install --require-hashes --no-build-isolation --use-pep517 -r requirements/$(1).lock
	@errors=$$($(PIP) install --require-hashes --only-binary :all: -r requirements/voice.lock 2>&1) || case "$$errors" in \
		*"No matching distribution"*) echo "no wheels of the voice engines for this machine: speech needs a provider's key, or pip install svc-relay[voice]" >&2 ;; \
		*) echo "$$errors" >&2; exit 1 ;; \
	esac
	@$(PIP) install --no-deps --no-build-isolation -e .
endef

$(STAMP)-run: $(STAMP)-python-$(VERSION) requirements/build.lock requirements/run.lock requirements/voice.lock pyproject.toml
	$(call install,run,what the programs need)
	@touch $@

$(STAMP)-dev: $(STAMP)-python-$(VERSION) requirements/build.lock requirements/run.lock requirements/voice.lock requirements/dev.lock \
		pyproject.toml
	$(call install,dev,everything for development)
	@touch $(STAMP)-run $@

$(STAMP)-fuzz: $(STAMP)-dev requirements/fuzz.lock
	@echo "installing the guided fuzzer into $(VENV), where there are wheels of it"
	@$(PIP) install --require-hashes --only-binary :all: -r requirements/fuzz.lock || \
		echo "no guided fuzzer for this machine: the plain one does without" >&2
	@touch $@

$(STAMP)-bench: $(STAMP)-dev requirements/bench.lock
	@echo "installing the benchmarks' rivals into $(VENV)"
	@$(PIP) install --require-hashes -r requirements/bench.lock
	@touch $@

$(STAMP)-release: $(STAMP)-dev requirements/release.lock
	@echo "installing what judges a release into $(VENV)"
	@$(PIP) install --require-hashes -r requirements/release.lock
	@touch $@

$(QUICK)/.installed: requirements/quick.lock
	@echo "installing what the core's tests need into $(QUICK)"
	@$(PYTHON) -m venv --clear $(QUICK)
	@$(QUICK)/bin/python -m pip --quiet --quiet --disable-pip-version-check --no-input install --no-compile --require-hashes -r requirements/quick.lock
	@touch $@

# A venv made by an older default Python is made anew; one of the same version is kept.
$(STAMP)-python-$(VERSION):
	@$(if $(VERSION),,echo "svc-relay needs Python 3.11 or later, and '$(PYTHON)' is not one: install it, or name it with make PYTHON=/path/to/python3.11" >&2; exit 1)
	@if [ "$$($(BIN)/python $(version))" != "$(VERSION)" ]; then \
		$(PYTHON) -m venv --clear $(VENV) || { \
			rm -rf $(VENV); echo "$(PYTHON) could not make a venv: install its venv package (Debian: python$(VERSION)-venv)" >&2; exit 1; }; \
	fi
	@touch $@
