# Two commands do everything on a machine with Python 3.11+ and make:
#   make run    set up .venv with what running needs, run the main job on a shipped instance, print the table
#   make test   the same with the tools of tests and development, then lint, types and the tests
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SITE   := $(VENV)/.installed-site
CLUSTERS := $(VENV)/.installed-clusters
RUNS   := $(VENV)/.installed-to-run
TOOLS  := .[test,dev]
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
JOBS   ?= 2
export OMP_NUM_THREADS ?= 1
# what one process of the tests has read, others need not compile again
unexport PYTHONDONTWRITEBYTECODE
ifneq ($(wildcard ../shared/data),)
export OPTSCHED_DATA ?= $(abspath ../shared/data)
endif

.PHONY: run test setup extras lint types unit compiled release bench coverage study library install-check clusters pages study-pages docs site clean

run: $(RUNS)
	$(BIN)/optsched run cluster-week -p fifo+consolidated -p sjf+consolidated -p srtf -p tiresias

# lint and types beside the tests: neither keeps two processors busy
test: $(STAMP)
	@$(MAKE) --no-print-directory -j$(JOBS) lint types unit

setup: $(STAMP)

# $(call install,WHAT): uv when present, plain venv and pip when not. Byte code is made of what is imported: to make it
# of everything takes a third of the time.
define install
	@echo 'installing into $(VENV): some minutes, once' >&2
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing --python '>=3.11' $(VENV) && \
	  uv pip install --quiet --python $(BIN)/python -e '$(1)'; \
	else \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "optsched needs Python 3.11 or newer: make PYTHON=python3.12")' && \
	  $(PYTHON) -m venv $(VENV) && \
	  $(PIP) -e '$(1)'; \
	fi
endef

$(RUNS): pyproject.toml
	$(call install,.)
	@touch $(RUNS)

# what the tests need is more than what a run needs
$(STAMP): pyproject.toml
	$(call install,$(TOOLS))
	@touch $(RUNS) $(STAMP)

# what builds the package is there already
$(SITE): $(STAMP)
	$(PIP) --no-build-isolation -e '.[docs]'
	@touch $(SITE)

$(CLUSTERS): $(STAMP)
	$(PIP) --no-build-isolation -e '.[dask,ray]'
	@touch $(CLUSTERS)

# both at once
extras: $(STAMP)
	$(PIP) --no-build-isolation -e '.[docs,dask,ray]'
	@touch $(SITE) $(CLUSTERS)

# the files with tests of a marker: collecting all others takes as long as some of these tests
marked = $(shell grep -rl --include='test_*.py' 'mark\.$(1)' tests)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/nbstripout --verify notebooks/*.ipynb
	$(BIN)/codespell

types: $(STAMP)
	$(BIN)/mypy optsched

# $(call tested,ARGUMENTS): the tests on all processors. Rewriting 8,000 asserts takes longer than most files: only what
# fails is run again with them, to say what was found.
define tested
$(BIN)/pytest -q -n $(JOBS) --dist loadgroup --assert=plain $(1) || \
	  { $(BIN)/pytest -q -n 1 --dist loadgroup --last-failed --last-failed-no-failures none $(1); false; }
endef

unit: $(STAMP)
	$(call tested,)

# what needs machine code, and engines and rules compiled at their first call: `make unit` interprets small runs
compiled: export OPTSCHED_COMPILED = 1
compiled: $(STAMP)
	$(call tested,-m 'compiled and not study' $(call marked,compiled) tests/frozen \
	  tests/simulation/test_engine.py tests/simulation/test_iterations.py)

# what a change seldom breaks, or takes long: pages, pictures, wordings of commands, archives, studies in their small size
release: $(STAMP)
	$(call tested,-m 'release and not study' $(call marked,release))

# measurements are kept in .benchmarks, compared with the last ones kept, and drawn in build/benchmarks.html; BEFORE=COMMIT: a
# table of CPU seconds and peak memory before and after, in turns (LONG=1: with the long rows)
bench: $(STAMP)
	$(BIN)/pytest -q -m bench --benchmark-enable --benchmark-columns=mean,rounds --benchmark-autosave \
	  $(if $(wildcard .benchmarks/*/*.json),--benchmark-compare) tests/benchmarks
	PYTHONPATH=tests $(BIN)/python -m benchmarks.history
	$(if $(BEFORE),PYTHONPATH=tests $(BIN)/python -m benchmarks.compare $(BEFORE) $(if $(LONG),--long) -o build/compared.md)

# the lines that the tests run (those of compiled code count where a test interprets it)
coverage: $(STAMP)
	$(BIN)/coverage erase
	$(BIN)/pytest -q -n $(JOBS) --dist loadgroup --cov=optsched --cov-report=term:skip-covered

# what is long, and all that `make test` tries on some cases again on every case, and on examples that nobody has seen
study: $(STAMP)
	$(BIN)/pytest -q -n $(JOBS) --dist loadgroup -m 'study or not (bench or install or clusters or release or site)' \
	  --hypothesis-profile=explore --durations=20 tests

# WHOLE=1: every way to install with all its dependencies, some minutes more
install-check: $(STAMP)
	OPTSCHED_WHOLE=$(WHOLE) $(BIN)/pytest -q -rs -n $(JOBS) --dist loadgroup -m install tests/install

# sweeps on a Dask scheduler with two workers and on a Ray head, started here
clusters: $(CLUSTERS)
	$(BIN)/pytest -q -rs -m clusters tests/sweeps

# the documentation site, in build/docs/html, with the notebooks executed; warnings are errors
docs: $(SITE)
	$(BIN)/python docs/build.py

# the same, with every link and the output of pages with pictures checked, and every page opened in a browser if there is one
site: $(SITE)
	$(BIN)/pytest -q -rs -m site tests/site

# the instance library, every optimum and interval of it proved again; resumes in build/library, which `make clean` removes
library: $(STAMP)
	$(BIN)/python -m optsched.studies.make_library

# what README.md and docs/ show of the program's output, and their pictures, made again
pages: $(STAMP)
	PYTHONPATH=tests $(BIN)/python -m pages.refresh

# what the pages of the four papers show, measured again in the size and on the seeds of docs/measured: 15 CPU minutes
study-pages: $(STAMP)
	$(BIN)/python docs/measure.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage build/docs build/library
