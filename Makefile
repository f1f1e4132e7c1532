# Two commands do all set-up by themselves: `make dev` and `make test`.
#
# What they install is pinned in constraints.txt and package-lock.json; stamps in .make/ remember what
# is installed, so that a second run starts at once.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := .make
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Hundreds of tests start a Python of their own, which would compile all of core each time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: lock help dev test tools check lint types types-mypy types-pyright types-public compiled typing unit coverage quick quick-half quick-rest runtime docs docs-serve links bench traces fuzz schema keys format clean

help:  ## Show this list
	@grep -hE '^[a-z-]+:.*?## ' $(MAKEFILE_LIST) | awk -F ':.*?## ' '{printf "  make %-12s %s\n", $$1, $$2}'

# -- what must be there

$(STAMP)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'core needs Python 3.11 or newer: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11'; exit 1; }
	@echo 'Making $(VENV) …'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	@mkdir -p $(STAMP) && touch $@

$(STAMP)/dev: $(STAMP)/python pyproject.toml constraints.txt
	@echo 'Installing what the development server needs …'
	@$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev,jwt,forms]' jinja2
	@touch $@

# Python compiles what is imported when it is. pip would compile all that there is, used or not.
$(STAMP)/dev-tools: $(STAMP)/python pyproject.toml constraints.txt
	@echo 'Installing what the project is checked with …'
	@$(BIN)/python -m pip install --quiet --no-compile -c constraints.txt -e '.[dev,serve,fast,jwt,forms,mypy,openapi,test]' --group dev-tools
	@touch $@

# The explorer is tested in a real Chromium: in its headless shell, which takes half as much of the processor as the
# whole browser, and in the browser where there is no shell. Without either its tests are skipped, and say so.
$(STAMP)/browser: tests/explorer/package-lock.json
	@mkdir -p $(STAMP)
	@if [ -z "$$CHROMIUM" ] && ! command -v chromium-headless-shell >/dev/null; then \
		if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
			echo 'Installing Chromium …'; export DEBIAN_FRONTEND=noninteractive; apt-get update -qq >/dev/null; \
			for name in chromium-headless-shell chromium; do \
				apt-get install -qq -y --no-install-recommends $$name >/dev/null && break; \
			done; \
		fi; \
		if ! (command -v chromium-headless-shell || command -v chromium || command -v chromium-browser) >/dev/null; then \
			echo 'Chromium is missing, and the tests of the explorer need it: apt install chromium-headless-shell'; \
			[ "$$CI" != true ] || exit 1; \
		fi; \
	fi
	@if command -v npm >/dev/null; then npm ci --prefix tests/explorer --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null; \
	elif [ "$$CI" = true ]; then echo 'npm is missing: install Node.js 20 or newer'; exit 1; fi
	@touch $@

# HYPERDRIVE is tested against a real PostgreSQL, which the tests start by themselves. apt-get runs once at a time.
$(STAMP)/postgres: | $(STAMP)/browser
	@mkdir -p $(STAMP)
	@if ! ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && ! command -v initdb >/dev/null; then \
		if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
			echo 'Installing PostgreSQL …'; \
			apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends postgresql >/dev/null; \
		elif [ "$$CI" = true ]; then echo 'PostgreSQL is missing: apt install postgresql'; exit 1; \
		else echo 'PostgreSQL is missing: its tests will be skipped. Install it with: apt install postgresql'; fi; \
	fi
	@touch $@

# The settings of docs/how-to/ for a proxy in front are tried with the proxies themselves. With RUNLEVEL=1 their packages
# start no service.
$(STAMP)/proxies: | $(STAMP)/postgres
	@mkdir -p $(STAMP)
	@if ! { PATH="$$PATH:/usr/sbin" command -v nginx && command -v caddy; } >/dev/null; then \
		if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
			echo 'Installing nginx and Caddy …'; \
			apt-get update -qq >/dev/null && RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends nginx-light caddy >/dev/null; \
		fi || echo 'nginx and Caddy cannot be installed: their tests will be skipped'; \
	fi
	@touch $@

# The processor's instructions of a request are counted with it: benchmarks/cost.py.
$(STAMP)/valgrind: | $(STAMP)/proxies
	@mkdir -p $(STAMP)
	@if ! command -v valgrind >/dev/null; then \
		if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
			echo 'Installing valgrind …'; \
			apt-get update -qq >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends valgrind >/dev/null; \
		elif [ "$$CI" = true ]; then echo 'valgrind is missing: apt install valgrind'; exit 1; \
		else echo 'valgrind is missing: its test will be skipped. Install it with: apt install valgrind'; fi; \
	fi
	@touch $@

# The generators of docs/how-to/typescript.md, whose clients are compiled and used in a test.
$(STAMP)/typescript: tests/openapi/typescript/package-lock.json
	@mkdir -p $(STAMP)
	@if command -v npm >/dev/null; then npm ci --prefix tests/openapi/typescript --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null; \
	elif [ "$$CI" = true ]; then echo 'npm is missing: install Node.js 20 or newer'; exit 1; fi
	@touch $@

# The official conformance suite, inspector and client of the Model Context Protocol, with the Node.js that they need.
$(STAMP)/mcp-conformance: tests/mcp/conformance/package-lock.json
	@mkdir -p $(STAMP)
	@if command -v npm >/dev/null; then npm ci --prefix tests/mcp/conformance --ignore-scripts --no-audit --no-fund --loglevel=error >/dev/null; \
	elif [ "$$CI" = true ]; then echo 'npm is missing: install Node.js 20 or newer'; exit 1; fi
	@touch $@

# The schema of the platform's own tool, which the configuration model is held against: one file of its npm package.
$(STAMP)/config-schema.json: tests/config/platform_schema/tool.json | $(STAMP)/dev-tools
	@if command -v npm >/dev/null; then $(BIN)/python -m tests.config.platform_schema $@; \
	elif [ "$$CI" = true ]; then echo 'npm is missing: install Node.js 20 or newer'; exit 1; fi

# workerd and pyodide are fetched and prepared before the tests, so that not several processes do it.
$(STAMP)/workerd: $(STAMP)/dev-tools src/core/runtime/toolchain.py
	@$(BIN)/python -c 'import asyncio; from core.runtime.build_worker import prepare; \
		from core.runtime.toolchain import missing_reason, toolchain; missing_reason() or asyncio.run(prepare(toolchain()))'
	@touch $@

# -- the two commands

EXAMPLE ?= users

dev: $(STAMP)/dev  ## Run examples/users on the embedded bindings, or another: make dev EXAMPLE=links
	@cd examples/$(EXAMPLE) && ../../$(BIN)/core dev

# What is installed comes over the network while the type checkers compute, two at a time. Tests start programs and wait
# for them for about half of their time: of four processes two can run for 86 % of it, of six nearly always. The
# documentation is built by the tests, which read it, with the options of `make docs`.
test:  ## Run everything that CI runs
	@$(MAKE) --no-print-directory --output-sync=target --jobs=3 tools types-pyright types-mypy compiled types-public lint
	$(SUITE) -n 6 $(UNUSED)

# -- parts

check: $(STAMP)/dev-tools  ## The inner loop: lint, types and the quick tests
	@$(MAKE) --no-print-directory --output-sync=target --jobs=2 types-mypy quick lint

# SQLite waits for the disk after each transaction, and tests make thousands: where memory has room for their folders
# (1.5 GB at most) beside what the tests need themselves, they are there. Those of tests that failed stay.
FREE   := $(shell awk '/^MemAvailable/ { print int($$2 / 1024) }' /proc/meminfo 2>/dev/null)
MEMORY := $(shell df -Pm /dev/shm 2>/dev/null | awk 'NR > 1 && $$4 > 3000 && 0$(FREE) > 8000 { print "-p /dev/shm" }')
TESTS   = export PYTEST_DEBUG_TEMPROOT=$$(mktemp -d $(MEMORY)); \
	trap '[ $$? != 0 ] || rm -rf "$$PYTEST_DEBUG_TEMPROOT"' EXIT; $(BIN)/pytest -q

# Plugins that the tests do not use are asked about each of them all the same.
UNUSED = -p no:pytest_cov -p no:anyio

# Two processes with a half of the tests each: pytest-xdist would collect all of them three times.
QUICK = $(TESTS) -x -m 'not slow and not runtime' --hypothesis-profile quick -p no:xdist $(UNUSED)
HALF := $(addprefix tests/,attacks config contracts http middleware sql validation)

quick: quick-half quick-rest

quick-half: $(STAMP)/dev-tools
	$(QUICK) $(HALF)

quick-rest: $(STAMP)/dev-tools
	$(QUICK) tests docs/examples $(addprefix --ignore=,$(HALF))

lint: $(STAMP)/dev-tools  ## Lint, format and the import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: types-mypy types-pyright types-public  ## mypy --strict over sources, tests and examples, pyright strict over sources and examples

types-mypy: $(STAMP)/dev-tools
	$(BIN)/mypy

types-pyright: $(STAMP)/dev-tools
	$(BIN)/pyright --warnings

types-public: $(STAMP)/dev-tools
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/pyright --ignoreexternal --verifytypes core

# pytest compiles each file of tests anew, and keeps it: once here, for six processes that would all do it at the same time.
compiled: $(STAMP)/dev-tools
	@said=$$($(BIN)/pytest -qq --collect-only $(UNUSED)) || { echo "$$said"; exit 1; }

typing: $(STAMP)/dev-tools  ## What type checkers must accept and refuse
	$(BIN)/pytest -q -n 2 tests/typing

# One file's tests run in one process, which has their servers and workers.
SUITE = $(TESTS) --dist loadfile --no-loadscope-reorder

tools: $(STAMP)/dev-tools $(STAMP)/browser $(STAMP)/postgres $(STAMP)/proxies $(STAMP)/valgrind $(STAMP)/typescript $(STAMP)/mcp-conformance $(STAMP)/config-schema.json $(STAMP)/workerd

unit: tools  ## The tests outside workerd
	$(SUITE) -n 3 -m 'not runtime' $(WITH)

coverage: WITH = --cov --cov-report=term
coverage: unit  ## The same, and which lines and branches of core they reach

runtime: $(STAMP)/dev-tools $(STAMP)/workerd  ## The tests inside workerd
	$(SUITE) -n 2 -m runtime tests/runtime

lock: $(STAMP)/dev-tools  ## Pin what is installed now in constraints.txt
	@$(BIN)/python -m pip freeze --exclude-editable --quiet > constraints.txt

schema: $(STAMP)/config-schema.json  ## Get the schema of the platform's own tool

keys: $(STAMP)/dev-tools  ## Write the table of the platform's keys anew, after naming a version in tests/config/platform_schema/tool.json
	$(BIN)/python -m tests.config.platform_schema $(STAMP)/config-schema.json --write

format: $(STAMP)/dev-tools  ## Format and fix what can be fixed
	$(BIN)/ruff check --fix --quiet .
	$(BIN)/ruff format --quiet .

traces: $(STAMP)/dev-tools  ## Replay a folder of recorded traces: make traces DIR=…
	@$(BIN)/python -m tests.traces $(or $(DIR),tests/traces/data)

docs: $(STAMP)/dev-tools  ## Build the documentation, strictly
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict --site-dir site

links: docs  ## Ask for every address elsewhere that the documentation links to
	$(BIN)/python -m tests.support.links site

docs-serve: $(STAMP)/dev-tools  ## Show the documentation while writing it
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs serve

# The peers want Python 3.12, and an environment of their own. The first of these that runs, and is new enough, is taken:
# a version manager may leave commands that do nothing but say so.
BENCH_PYTHONS = python3.12 $(PYTHON) python3.13 python3.14 $(wildcard $(HOME)/.pyenv/versions/3.12.*/bin/python)

$(STAMP)/bench: benchmarks/requirements.txt pyproject.toml
	@echo 'Installing the frameworks to compare with …'
	@for python in $(BENCH_PYTHONS); do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; then \
			$$python -m venv .venv-bench && exit 0; exit 1; fi; \
	done; echo 'The peers need Python 3.12 or newer: make bench PYTHON=/path/to/python3.12'; exit 1
	@.venv-bench/bin/python -m pip install --quiet -r benchmarks/requirements.txt -e '.[serve]'
	@if command -v npm >/dev/null; then npm install --silent --no-audit --no-fund --save-exact --prefix $(STAMP)/hono hono@4.13.19 @hono/node-server@2.1.9 node@22.23.3; fi
	@mkdir -p $(STAMP) && touch $@

bench: $(STAMP)/bench  ## Measure everything, in one run (about ten minutes), and write docs/explanation/performance.md
	.venv-bench/bin/python -m benchmarks --write

fuzz: $(STAMP)/dev-tools  ## Try each property with 5,000 examples, and fuzz what reads a client's bytes: make fuzz SECONDS=600
	@$(BIN)/python -m pip install --quiet atheris
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60)
	$(BIN)/pytest -q -n 2 -m hypothesis --hypothesis-profile fuzz
	CORE_RUNS=5000 $(BIN)/pytest -q -n 2 docs/examples/edge tests/middleware/test_simulated.py

clean:  ## Remove everything that make has made
	rm -rf $(VENV) $(STAMP) tests/explorer/node_modules tests/openapi/typescript/node_modules tests/mcp/conformance/node_modules tests/runtime/miniflare/node_modules site .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
