# What one types here. Needs Python 3.11 (or newer) and make; everything else lands in .venv.
# Pass more to the command of a target with ARGS: make up ARGS="--port 7443", make test ARGS="-k watch -x".

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
# Tests run on as many workers as there are cores, four at most, and the tests of a file stay on one worker: make test WORKERS=1.
WORKERS ?= auto
SHARE ?= 1
PARALLEL := -n $(WORKERS) --maxprocesses 4 --dist loadfile --no-loadscope-reorder

# Compiled files are kept, whatever the environment says: compiling every test anew takes half the time of a short run.
unexport PYTHONDONTWRITEBYTECODE

# A stamp is newer than what the environment was made from, or the environment is brought up to date.
RUNTIME := $(VENV)/.runtime
DEV := $(VENV)/.dev

.DEFAULT_GOAL := help
.PHONY: help venv up test test-unit soak check fmt bench keps mutants lock clean

help: ## this list
	@echo "Nodeward: a Kubernetes control plane and node agent in Python."
	@echo
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile
	@echo
	@echo 'More flags: make up ARGS="--port 7443", make test ARGS="-k watch -x"'

venv: $(RUNTIME) ## make .venv with nodeward in it

up: $(RUNTIME) ## start a cluster in this directory (.nodeward); Ctrl-C stops it
	@exec $(BIN)/nodeward up --dir .nodeward $(ARGS)

test: $(DEV) ## run every test; the slowest are named at the end
	$(BIN)/python -m pytest $(PARALLEL) --durations=10 $(ARGS)

test-unit: $(DEV) ## run the tests that are not marked slow
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow" $(ARGS)

soak: $(DEV) ## play all rounds of kills, fuzzed requests and the reference, a few minutes per tenth; SHARE=0.1 plays one
	NODEWARD_SOAK=$(SHARE) $(BIN)/python -m pytest $(PARALLEL) -m soak --durations=10 $(ARGS)

check: $(DEV) ## format, lint, types and the rules of the repository; under a minute
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/tidy

fmt: $(DEV) ## bring the code into form
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(RUNTIME) ## measure this machine: make bench ARGS="api -o json"
	@exec $(BIN)/nodeward bench $(ARGS)

keps: $(DEV) ## run the tests of the KEPs; say which statements are proven, which are open
	@$(BIN)/python -m tests.keps $(PARALLEL) $(ARGS)

mutants: $(DEV) ## break one rule at a time in a copy: a test named for it must notice; ARGS="5328"
	@$(BIN)/python -m tests.mutants $(ARGS)

lock: ## write the lock files anew from pyproject.toml, with the newest versions
	rm -rf build
	$(PYTHON) -m venv build/lock
	build/lock/bin/pip install --quiet "setuptools>=77"
	build/lock/bin/pip install --quiet .
	(echo "# What nodeward runs with. Written by 'make lock'."; \
	  build/lock/bin/pip freeze --all | grep -vE '^(pip|nodeward)[ =]') > requirements.lock
	build/lock/bin/pip install --quiet ".[dev]"
	(echo "# What the tests and checks need besides. Written by 'make lock'."; echo "-r requirements.lock"; \
	  build/lock/bin/pip freeze --all | grep -vE '^(pip|nodeward)[ =]' | grep -vxFf requirements.lock) \
	  > requirements-dev.lock
	rm -rf build

clean: ## remove .venv and every cache; a cluster's state in .nodeward stays
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Without build isolation, so that setuptools too is the one of the lock file; the compat mode is a plain path, where the
# other mode has every start of Python import a finder, which costs nodeward --help a third of its time.
$(RUNTIME): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: no python3 on the PATH; install Python 3.11 or newer" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: $(PYTHON) is too old; install Python 3.11 or newer, or say PYTHON=/path/to/it" >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation \
	  --config-settings editable_mode=compat -e .
	@$(BIN)/python -m compileall -q nodeward
	@touch $@

$(DEV): requirements-dev.lock $(RUNTIME)
	$(BIN)/pip install --quiet --disable-pip-version-check -r requirements-dev.lock
	@touch $@
