# Needs a Python of at least 3.10, pip and make. Everything else goes into $(VENV).

VENV ?= .venv
PYTHON ?= $(shell for python in python3 python python3.14 python3.13 python3.12 python3.11 python3.10; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$python && break; done)
BIN = $(VENV)/bin
PYTEST_ARGS ?= -n auto

.PHONY: help demo test coverage lint format types docs check-docs bench clean

help:
	@echo 'make demo      see what a model sees of sample_kb; MODEL=… asks a real one'
	@echo 'make test      run the suite (PYTEST_ARGS="-n 2 -k walk")'
	@echo 'make coverage  run the suite and report branch coverage'
	@echo 'make lint      ruff, formatting, the import contract'
	@echo 'make format    let ruff mend what it can'
	@echo 'make types     mypy'
	@echo 'make docs      regenerate the help texts and transcripts in README.md and docs/'
	@echo 'make bench     run every benchmark (minutes)'
	@echo 'make clean     remove the virtual environment and caches'

# Some systems ship a venv module without pip to put into it; then pip's own way is tried.
$(BIN)/python:
	@test -n '$(PYTHON)' || { echo 'no Python of at least 3.10 found; name one: make PYTHON=…' >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV) && $(PYTHON) -m venv --without-pip $(VENV) \
		&& $(PYTHON) -m pip --python $(VENV) install --quiet pip; }

$(VENV)/.installed-dev: EXTRAS = [code,fast,mcp]
$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.$(EXTRAS)' --group $*
	@touch $@

demo: $(VENV)/.installed-demo
	@MODEL='$(MODEL)' $(BIN)/python scripts/demo.py

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(PYTEST_ARGS)

coverage: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(PYTEST_ARGS) --cov --cov-report=term

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

format: $(VENV)/.installed-dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

docs: $(VENV)/.installed-dev
	$(BIN)/python -m cogapp -I . -r README.md docs/*.md

check-docs: $(VENV)/.installed-dev
	$(BIN)/python -m cogapp -I . --check --diff README.md docs/*.md

bench: $(VENV)/.installed-dev
	@for script in bench/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
