# Two commands do everything on a machine with Python 3.11+ and make:
#   make run    set up .venv, run the main job on a shipped instance, print the table
#   make test   the same set-up, then lint, types, all tests and the notebooks
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
JOBS   ?= 2
export OMP_NUM_THREADS ?= 1
ifneq ($(wildcard ../shared/data),)
export OPTSCHED_DATA ?= $(abspath ../shared/data)
endif

.PHONY: run test setup lint types unit notebooks bench study clean

run: $(STAMP)
	$(BIN)/optsched run cluster-week -p fifo+consolidated -p sjf+consolidated -p srtf -p tiresias

test: lint types unit notebooks

setup: $(STAMP)

# uv when present, plain venv and pip when not
$(STAMP): pyproject.toml
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing --python '>=3.11' $(VENV) && \
	  uv pip install --quiet --python $(BIN)/python -e '.[test,dev]'; \
	else \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "optsched needs Python 3.11 or newer: make PYTHON=python3.12")' && \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,dev]'; \
	fi
	@touch $(STAMP)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/nbstripout --verify notebooks/*.ipynb

types: $(STAMP)
	$(BIN)/mypy optsched

unit: $(STAMP)
	$(BIN)/pytest -q -n $(JOBS) --dist loadgroup

notebooks: $(STAMP)
	$(BIN)/pytest -q -n $(JOBS) --nbmake --nbmake-timeout=170 notebooks

bench: $(STAMP)
	$(BIN)/pytest -q -m bench --benchmark-enable --benchmark-columns=mean,rounds tests/benchmarks

study: $(STAMP)
	$(BIN)/pytest -q -m study --durations=20 tests

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .benchmarks .hypothesis
