# Everything a newcomer or CI runs. `make help` lists the targets.
PYTHON ?= python3.11
PYTHON := $(shell command -v $(PYTHON) || command -v python3)
VENV   := .venv
BIN    := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help dev demo quick test check bench lock clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(VENV)/run.stamp: requirements.lock pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(VENV)/test.stamp: requirements-dev.lock $(VENV)/run.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-dev.lock
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

bench: $(VENV)/test.stamp  ## measure the intake path against bare uvicorn in the same run
	$(BIN)/python bench/intake.py

lock: $(VENV)/test.stamp  ## resolve the lock files again
	$(BIN)/python -m pip install --quiet pip-tools
	$(BIN)/pip-compile --quiet --strip-extras --generate-hashes --allow-unsafe --no-emit-index-url --no-emit-find-links --no-header -o requirements.lock pyproject.toml
	$(BIN)/pip-compile --quiet --strip-extras --extra dev --generate-hashes --allow-unsafe --no-emit-index-url --no-emit-find-links --no-header -o requirements-dev.lock pyproject.toml

clean:  ## remove the virtual environment and the caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
