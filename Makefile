# Every command sets up what it needs: a virtual environment in .venv with pinned versions.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
TESTS  ?= tests
# Many tests wait for a threshold: six processes keep two cores busy.
JOBS   ?= 6
MINUTES ?= 30
# The Pythons of test-django-matrix, by name; each version of Django runs on the first that is new enough.
PYTHONS ?= python3 python3.12 python3.13
# The PostgreSQL versions of test-postgres-matrix.
VERSIONS ?= 14 15 16 17 18

# The tests start hundreds of interpreters: none of them should compile our modules anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-django demo-web screenshots test test-django test-django-matrix browser test-fast test-postgres-matrix check format faults faults-long soak bench bench-quick bench-curves docs release-fixture clean

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-21s %s\n", $$1, $$2}'

$(READY): pyproject.toml requirements/dev.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "horsies needs Python 3.11 or newer; use: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	@# Most of what is installed is never imported: what is, compiles itself.
	$(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c requirements/dev.txt -e '.[dev]'
	@touch $(READY)

setup: $(READY) ## create the virtual environment

demo: $(READY) ## run a few hundred tasks on an embedded PostgreSQL and show what happens
	$(BIN)/horsies demo

demo-django: $(READY) ## a Django project on an embedded PostgreSQL: a page, the admin, a worker
	$(BIN)/python examples/django/demo.py

demo-web: $(READY) ## the dashboard of a busy shop, on an embedded PostgreSQL, at http://127.0.0.1:8600/
	$(BIN)/horsies demo --web

screenshots: $(READY) browser ## pictures of every page of the dashboard, in build/screenshots
	PYTHONPATH=tests $(BIN)/python -m support.screenshots build/screenshots

test: $(READY) browser ## run all tests (real PostgreSQL, real processes, a real browser)
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(TESTS)
ifeq ($(TESTS),tests)
	$(MAKE) test-django
endif

test-django: $(READY) browser ## run the tests of the Django integration, on the Django of .venv
	$(BIN)/python -m pytest -c tests/django/pytest.ini -n $(JOBS) --dist worksteal tests/django

test-django-matrix: $(READY) browser ## the same on Django 5.2, 6.0 and 6.1, with PYTHONS='python3.12'
	PYTHONPATH=tests $(BIN)/python -m support.django_matrix --pythons $(PYTHONS) -- -q -n $(JOBS)

browser: # Debian's own, where we may install it; the tests that need one say loudly when there is none
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get install -y --no-install-recommends chromium chromium-driver >/dev/null; } || \
	  echo "!!! no chromium here and none could be installed: dashboard and admin will not be clicked through" >&2

test-fast: $(READY) ## run the tests that take seconds
	$(BIN)/python -m pytest -q -n $(JOBS) -m 'not slow and not faults' tests

test-postgres-matrix: TESTS = tests/sql tests/migrations tests/integration tests/end_to_end tests/faults
test-postgres-matrix: $(READY) ## run the database's tests on PostgreSQL 14 to 18, or VERSIONS='14 18'
	PYTHONPATH=tests $(BIN)/python -m support.matrix --versions $(VERSIONS) -- -q -n $(JOBS) --dist worksteal $(TESTS)

check: $(READY) ## format, lint, types, import layers, conventions
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/unit/test_conventions.py

format: $(READY) ## rewrite the code in the house format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

faults: $(READY) ## break things on purpose: hundreds of kill -9, races, outages, clocks
	HORSIES_FAULT_ROUNDS=20 HORSIES_FAULT_EXAMPLES=200 $(BIN)/python -m pytest -m faults -n $(JOBS) --dist worksteal tests

faults-long: $(READY) ## the same with more bad luck, and 100,000 tasks among kills and restarts
	HORSIES_FAULT_ROUNDS=60 HORSIES_FAULT_EXAMPLES=1000 $(BIN)/python -m pytest -m faults -n $(JOBS) --dist worksteal tests
	HORSIES_FAULT_TASKS=100000 $(BIN)/python -m pytest tests/faults/test_hundred_thousand.py

soak: $(READY) ## half an hour of work with a kill every 10 s: nothing lost, memory level
	HORSIES_SOAK_MINUTES=$(MINUTES) $(BIN)/python -m pytest -s tests/faults/test_soak.py

bench: $(READY) ## measure every target, side by side with raw SQL and peers
	$(BIN)/python -m benchmarks

bench-quick: $(READY) ## the same with a fifth of the work, in about 3 minutes
	$(BIN)/python -m benchmarks --quick

bench-curves: $(READY) ## the rate against every size: backlog, history, queues, workers ...
	$(BIN)/python -m benchmarks curves

docs: $(READY) ## run every example in the docs
	$(BIN)/python -m pytest -q tests/docs

release-fixture: $(READY) ## keep this version's wheel for the tests of the next one
	PYTHONPATH=tests $(BIN)/python -m support.releases

clean: ## remove the virtual environment and caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
