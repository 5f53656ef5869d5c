# Every verb of the project. A bare `make` lists them; `make demo` and `make test` set themselves up.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WORKSHOP := $(VENV)/.workshop
COMPILED := build/compiled/made
SET_UP := $(WORKSHOP) $(if $(filter 1,$(WIRECHECK_PURE)),,$(COMPILED))  # WIRECHECK_PURE=1 make ...: the plain source
PLAIN := WIRECHECK_PURE=1 WIRECHECK_COMPILED=  # for who wants plain source where CI insists on compiled
# What runs, as bytecode: where the environment keeps Python from writing it, a command would read 220 modules anew each time.
BYTECODE = @$(BIN)/python -m compileall -q wirecheck capture commands dashboards decode judge questions session story streaming
ONLY ?=
COMMA := ,
DEEP := $(if $(filter deep,$(HYPOTHESIS_PROFILE)),-o timeout=7200 -o faulthandler_timeout=7260)
# One ring alone, by two workers; what the tests of a module share is made once.
AT_ONCE := -n 2 --dist loadfile

.DEFAULT_GOAL := help
.PHONY: help setup demo test check laws unit scenarios coverage docs schemas bench chaos cluster live fuzz format clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# A line of set-up, with the seconds since make began; pip shows its progress where somebody looks at a terminal.
BEGAN_S := $(shell date +%s)
step = @printf 'set-up %4d s  %s\n' $$(($$(date +%s) - $(BEGAN_S))) "$(1)"
INSTALL = install $$(test -t 1 || echo --quiet) --disable-pip-version-check --no-compile
LOCKED = $(BIN)/python tools/lock.py
# As pip would, but by all processors, and without the packages' own tests (40 MB). Some hold files that are no Python 3.
PACKAGES_AS_BYTECODE = @$(BIN)/python -m compileall -qq -j 0 -x '/tests/' $(VENV)/lib || true

# What a verdict needs, through Spark too; the tools for work on it come after (WORKSHOP).
$(READY): pyproject.toml requirements.lock tools/lock.py
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "wirecheck needs Python 3.11 or newer, $(PYTHON) is " + sys.version.split()[0] + ": set PYTHON=python3.11")'
	$(call step,environment $(VENV)$(COMMA) once: 900 MB)
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(call step,downloading 540 MB by the hashes in requirements.lock: pyspark 434$(COMMA) pyarrow 52$(COMMA) numpy 16$(COMMA) mypy 14$(COMMA) pandas 12 ...)
	@$(LOCKED) build $(INSTALL)
	@$(LOCKED) demo $(INSTALL) --no-build-isolation
	@WIRECHECK_PURE=1 $(BIN)/python -m pip $(INSTALL) --no-deps --no-build-isolation --editable .
	$(PACKAGES_AS_BYTECODE)
	$(call step,looking for Java 17 or newer)
	@$(BIN)/python -m wirecheck.streaming.spark.java >/dev/null 2>&1 || \
	  { echo "               none found: adding one from a wheel (58 MB)"; $(LOCKED) jdk $(INSTALL); }
	$(BYTECODE)
	@touch $@
	$(call step,ready)

$(WORKSHOP): $(READY)
	$(call step,downloading 105 MB for those who work on it: deltalake 49$(COMMA) duckdb 25$(COMMA) ruff 10 ...)
	@$(LOCKED) work $(INSTALL)
	$(PACKAGES_AS_BYTECODE)
	@touch $@

# Anew whenever one of them is edited; where it cannot be done, one line says so and the plain source runs.
LISTED := wirecheck/extension_modules.txt
$(COMPILED): setup.py $(LISTED) $(shell sed '/^\#/d; s,^,wirecheck/,' $(LISTED)) $(READY)
	$(call step,compiling the modules of $(LISTED)$(COMMA) where there is a C compiler)
	@$(BIN)/python setup.py --quiet build_ext --inplace
	$(BYTECODE)
	@mkdir -p $(@D) && touch $@
	$(call step,$$($(BIN)/wirecheck --version))

.PHONY: compiled
compiled: $(READY) $(COMPILED) ## compile what was edited (the other verbs do it on their own); WIRECHECK_PURE=1 make ... runs the plain source

setup: $(SET_UP) ## make the environment (.venv); the other verbs do it on their own

demo: $(READY) ## replay a real faulty cluster's capture, by the local engine and by Spark; then compile what can be
	@$(BIN)/python -m tools.demo

# All tests run what is compiled, which is what users run; but the law of work counts lines of Python.
STEPS := tests/laws/test_work.py
UNITS_ONE := tests/capture tests/decode tests/judge tests/dashboards tests/questions tests/story
UNITS_TWO := tests/streaming tests/commands tests/bench tests/test_awaited.py tests/test_client_ids.py tests/test_extension_modules.py tests/test_how_tos.py tests/test_http_server.py tests/test_library.py tests/test_pages.py tests/test_systemd_units.py tests/test_verdict_schema.py tests/test_wirecheck.py
# Two processes for two processors, each with folders of its own: no test is collected twice, and one of them has all of Spark.
TWO_SAYS := build/tests-two.txt
test: check ## everything CI runs: check, and laws, unit and scenarios in one go
	@mkdir -p $(dir $(TWO_SAYS))
	@$(BIN)/python -m pytest $(DEEP) $(UNITS_TWO) tests/scenarios >$(TWO_SAYS) 2>&1 & two=$$!; failed=0; \
	  $(BIN)/python -m pytest $(DEEP) tests/laws $(UNITS_ONE) --ignore=$(STEPS) || failed=1; \
	  $(PLAIN) $(BIN)/python -m pytest $(DEEP) $(STEPS) || failed=1; \
	  wait $$two || failed=1; cat $(TWO_SAYS); exit $$failed

CHECKED := tests/test_architecture.py tests/test_documents.py tests/test_findings.py tests/test_mutations.py tests/test_packaging.py tests/test_site_pages.py tests/test_workflows.py
check: $(SET_UP) ## format, lint, types, imports, generated pages in step
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/ruff check --quiet .
	@$(BIN)/python -m tools.language
	@$(BIN)/mypy --no-error-summary & types=$$!; $(BIN)/python -m pytest $(CHECKED); ended=$$?; wait $$types && exit $$ended

laws: $(SET_UP) ## properties that hold for all inputs
	@$(BIN)/python -m pytest $(AT_ONCE) $(DEEP) tests/laws --ignore=$(STEPS)
	@$(PLAIN) $(BIN)/python -m pytest -n 2 $(DEEP) $(STEPS)

.PHONY: mutations
mutations: $(SET_UP) ## each law fails with a seeded mistake in the code: make mutations [ONLY=word]
	@$(BIN)/python -m tools.mutations $(ONLY)

.PHONY: same damages
same: $(SET_UP) ## what this checkout concludes beside another one: make same BASE=../base [FOLDERS=...], FREEZE=1
	@$(BIN)/python -m tools.same $(if $(FREEZE),--freeze,$(BASE) $(FOLDERS))

damages: $(SET_UP) ## who is accused of loss alone: make damages FOLDERS=... [BASE=../base]
	@$(BIN)/python -m tools.damages $(FOLDERS) $(if $(BASE),--base $(BASE))

unit: $(SET_UP) ## one test module per module
	@$(BIN)/python -m pytest $(AT_ONCE) $(UNITS_ONE) $(UNITS_TWO)

scenarios: $(SET_UP) ## real captures, compiled, by the plain loop and by the Spark query
	@$(BIN)/python -m pytest $(AT_ONCE) tests/scenarios

coverage: $(SET_UP) ## branch coverage of decode/ from its own tests, by the plain source
	@$(PLAIN) $(BIN)/python -m coverage run --branch --source=decode -m pytest tests/decode -p no:randomly
	@$(BIN)/python -m coverage report --show-missing --skip-covered --fail-under=100

docs: $(SET_UP) ## write the generated pages (CHECKS.md, dashboards)
	@$(BIN)/python -m tools.documents

schemas: $(SET_UP) ## import Kafka's layouts anew: make schemas FACTS=folder
	@$(BIN)/python -m tools.import_schemas $(FACTS)

bench: $(SET_UP) ## measure us and the peers: make bench [ONLY=decode|recovery|...|wide|cost] [MONTH_DAYS=30] [MONTH_MINUTES=10]
	@$(BIN)/python -m bench $(ONLY)

chaos: $(SET_UP) ## kill -9 a monitor at random moments, and compare: make chaos [KILLS=50] [SEED=1] [TABLES=delta]
	@$(BIN)/python -m bench.chaos --kills $(or $(KILLS),15) --seed $(or $(SEED),1) --tables $(or $(TABLES),parquet)

live: $(SET_UP) ## the agent beside real brokers, as root: kills, full disks, its own environment, two hosts
	@$(BIN)/python -m pytest tests/live -m live -p no:randomly -o timeout=3600 -o faulthandler_timeout=3660

cluster: $(SET_UP) ## the monitor by spark-submit on a Spark cluster, all on an S3 server; a second one is refused, one sleeps, a worker is killed, the store goes for 20 s
	@$(BIN)/python -m bench.cluster

.PHONY: archive
archive: $(SET_UP) ## all that a Spark cluster's Pythons need, as one file in dist/
	@$(BIN)/python -m tools.archive

UPTO = $(if $(MINUTES),--minutes $(MINUTES),$(1))  # of a fuzzer: a time, or a count
fuzz: $(SET_UP) ## mutated bytes everywhere: make fuzz [MINUTES=20 each] or [INPUTS=10000000] [SEQUENCES=20000] [TLS=20000] [CAPTURES=20000] [FRAMES=5000] [TRAFFIC=1000], [SEED=1]
	@$(BIN)/python -m fuzz.machine $(call UPTO,--inputs $(or $(INPUTS),10000000)) --seed $(or $(SEED),1)
	@$(BIN)/python -m fuzz.following $(call UPTO,--sequences $(or $(SEQUENCES),20000)) --seed $(or $(SEED),1) --damage bytes
	@$(BIN)/python -m fuzz.following $(call UPTO,--sequences $(or $(SEQUENCES),20000)) --seed $(or $(SEED),1) --damage net
	@$(BIN)/python -m fuzz.tls $(call UPTO,--sequences $(or $(TLS),20000)) --seed $(or $(SEED),1) --damage net
	@$(BIN)/python -m fuzz.tls $(call UPTO,--sequences $(or $(TLS),20000)) --seed $(or $(SEED),1) --damage bytes
	@$(BIN)/python -m fuzz.files captures $(call UPTO,--inputs $(or $(CAPTURES),20000)) --seed $(or $(SEED),1)
	@$(BIN)/python -m fuzz.files frames $(call UPTO,--inputs $(or $(FRAMES),5000)) --seed $(or $(SEED),1)
	@$(BIN)/python -m fuzz.files traffic $(call UPTO,--inputs $(or $(TRAFFIC),1000)) --seed $(or $(SEED),1)

.PHONY: site
site: $(SET_UP) ## the documentation as a site, in build/site: a page for each check, an index by Kafka's error names
	@$(BIN)/python -m tools.site

.PHONY: evidence
evidence: $(SET_UP) ## frames behind every finding of every shipped capture, judged alone: make evidence [FOLDERS=...]
	@$(BIN)/python -m tools.evidence_of_captures $(FOLDERS)

.PHONY: pictures
pictures: $(SET_UP) ## take the README's screenshots of the report again, with Chromium
	@$(BIN)/python -m tools.pictures

.PHONY: board
board: $(SET_UP) ## draw the picture of the overview dashboard again, with Prometheus (some minutes)
	@$(BIN)/python -m tools.board_picture

.PHONY: lock
lock: $(SET_UP) ## write the hashes in requirements.lock anew, after a change of a version
	@$(BIN)/python tools/lock.py --hashes

.PHONY: findings
findings: $(READY) ## is what findings/ says of other software still so? (minutes, downloads): make findings [ONLY=word]
	@$(BIN)/python -m tools.findings $(ONLY)

.PHONY: release
release: $(SET_UP) ## wheels (compiled, plain) and sdist in dist/, built twice and alike, the wheels tried in fresh environments
	@$(BIN)/python -m tools.release

.PHONY: fresh
fresh: ## demo and test on a minimal Debian with nothing but Python, as root: make fresh [VERBS=demo]
	@sh tools/fresh.sh $(VERBS)

format: $(SET_UP) ## format and fix what can be fixed
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

clean: ## remove the environment and caches
	rm -rf $(VENV) build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
