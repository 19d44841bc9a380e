# Everything a newcomer or CI runs. `make help` lists the targets.
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# `make PYTHON=...` takes another interpreter; otherwise the first of these that is new enough.
RECENT := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3.14 python3; do \
	$$name $(RECENT) 2>/dev/null && command -v $$name && break; done)

.DEFAULT_GOAL := help
.PHONY: help dev demo quick test check bench docs lock clean python

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

# A virtual environment of our own: the import names are generic, so nothing is shared.
$(BIN)/python:
	@"$(PYTHON)" $(RECENT) 2>/dev/null || \
		{ echo "vouchback needs Python 3.11 or newer (PYTHON = '$(PYTHON)'): make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@"$(PYTHON)" -m venv $(VENV) || \
		{ rm -rf $(VENV); echo "$(PYTHON) cannot make virtual environments (Debian: apt install $(notdir $(PYTHON))-venv)" >&2; exit 1; }

$(VENV)/run.stamp: requirements.lock pyproject.toml | $(BIN)/python
	$(PIP) --require-hashes -r requirements.lock
	$(PIP) --no-deps --editable .
	@touch $@

$(VENV)/test.stamp: requirements-dev.lock $(VENV)/run.stamp
	$(PIP) --require-hashes -r requirements-dev.lock
	@touch $@

dev: $(VENV)/run.stamp  ## install, then gateway + reconciler + demo provider, live, until Ctrl-C
	$(BIN)/vouchback dev

demo: $(VENV)/run.stamp  ## the same for a handful of operations, then a summary (exit code 0 if all ended well)
	$(BIN)/vouchback dev --once

quick: $(VENV)/test.stamp  ## the tests that take seconds
	$(BIN)/python -m pytest -q -n 2 -m "not slow and not e2e"

test: $(VENV)/test.stamp  ## all tests
	$(BIN)/python -m pytest -q -n 2

check: $(VENV)/test.stamp  ## format, lint, types, house rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/architecture

bench: $(VENV)/test.stamp  ## measure: intake against bare uvicorn, nodes on one Valkey, HTTP front, verification (needs wrk)
	$(BIN)/python bench/http_front.py
	$(BIN)/python bench/verification.py
	$(BIN)/python bench/intake.py
	$(BIN)/python -m bench.nodes

docs: $(VENV)/run.stamp  ## write the pages of docs/ that are made from the code
	$(BIN)/python -m docs.generate

lock: $(VENV)/test.stamp  ## resolve the lock files again
	$(PIP) pip-tools
	$(BIN)/pip-compile --quiet --strip-extras --generate-hashes --allow-unsafe --no-emit-index-url --no-emit-find-links --no-header -o requirements.lock pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --extra dev --generate-hashes --allow-unsafe --no-emit-index-url --no-emit-find-links --no-header -o requirements-dev.lock pyproject.toml

clean:  ## remove the virtual environment and the caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist

python:
	@echo "$(PYTHON)"
