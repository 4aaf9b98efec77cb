# Needs a Python of at least 3.10, pip and make. Everything else goes into $(VENV).

VENV ?= .venv
PYTHON ?= $(shell for python in python3 python python3.14 python3.13 python3.12 python3.11 python3.10; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && echo $$python && break; done)
BIN = $(VENV)/bin
PYTEST_ARGS ?= -n auto

# The suite starts many processes, of which each would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-all test-base test-lowest test-sdist field field-table check drop example fuzz coverage lint format \
	types docs check-docs site bench clean

help:
	@echo 'make demo         see what a model sees of sample_kb; MODEL=… asks a real one'
	@echo 'make test         run the suite without its slowest tests (PYTEST_ARGS="-n 2 -k walk")'
	@echo 'make check        format, lint, types, generated texts, and tests of what you changed'
	@echo 'make test-all     run the whole suite, with the thorough profile of hypothesis'
	@echo 'make test-base    run the suite without the extras'
	@echo 'make test-lowest  run the suite with the lowest versions pyproject.toml allows'
	@echo 'make test-sdist   build the sdist and run the suite that it holds'
	@echo 'make field        ask the plugins of real providers, against a model of our own (FIELD=llm-ollama),'
	@echo '                  and let the protocol'\''s own tools ask llm-kb mcp (needs node 22)'
	@echo 'make drop         take an add-on out in a copy, and run the suite there (NAME=capture)'
	@echo 'make example      install the add-on of docs/examples, and run its tests'
	@echo 'make fuzz         run each fuzz target for a minute (FUZZ_SECONDS=…)'
	@echo 'make coverage     run the whole suite; fails below 95 % of branches and lines'
	@echo 'make lint         ruff, formatting, the import contract'
	@echo 'make format       let ruff fix what it can'
	@echo 'make types        mypy'
	@echo 'make docs         regenerate the help texts and transcripts in README.md and docs/'
	@echo 'make site         build the documentation site into build/site'
	@echo 'make bench        run the benchmarks that need no repositories (minutes)'
	@echo 'make clean        remove the virtual environments and caches'

# Some systems ship a venv module without pip to put into it; then pip's own way is tried.
$(BIN)/python:
	@test -n '$(PYTHON)' || { echo 'no Python of at least 3.10 found; name one: make PYTHON=…' >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV) && $(PYTHON) -m venv --without-pip $(VENV) \
		&& $(PYTHON) -m pip --python $(VENV) install --quiet pip; }

PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(VENV)/.installed-%: pyproject.toml | $(BIN)/python
	$(PIP_INSTALL) --upgrade 'pip>=25.1'
	$(PIP_INSTALL) $(CONSTRAINTS) --editable . --group $*
	@touch $@

# The rules below call make for an environment of their own, beside $(VENV).
$(VENV)/lowest.txt: pyproject.toml scripts/lowest.py | $(BIN)/python
	$(BIN)/python scripts/lowest.py >$@

# Not editable and without the groups, which need a new pip: it is there in half the time. The
# code is that of the checkout all the same, and an environment for development stays as it is.
$(VENV)/.installed-demo: pyproject.toml | $(BIN)/python
	@test -e $(VENV)/.installed-dev || { \
		echo 'Installing llm-kb, llm and llm-echo into $(VENV) ...'; \
		$(PIP_INSTALL) . 'llm-echo>=0.4'; }
	@touch $@

demo: $(VENV)/.installed-demo
	@MODEL='$(MODEL)' PYTHONPATH='$(CURDIR)' $(BIN)/python scripts/demo.py

test: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m 'not slow' $(PYTEST_ARGS)

test-all: $(VENV)/.installed-dev
	HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-thorough} $(BIN)/python -m pytest $(PYTEST_ARGS)

test-base:
	$(MAKE) VENV=$(VENV)-base test

test-lowest:
	$(MAKE) VENV=$(VENV)-lowest $(VENV)-lowest/lowest.txt
	$(MAKE) VENV=$(VENV)-lowest CONSTRAINTS='--constraint $(VENV)-lowest/lowest.txt' test

test-sdist: $(VENV)/.installed-dev
	rm -rf build/sdist
	$(BIN)/python -m build --sdist --outdir build/sdist .
	tar -xzf build/sdist/*.tar.gz -C build/sdist
	cd build/sdist/llm_kb-*/ && $(MAKE) test

# The newest plugins, in an environment of their own.
field:
	$(MAKE) VENV=$(VENV)-field $(VENV)-field/.installed-field
	$(VENV)-field/bin/python -m tests.field.run $(FIELD)
	$(VENV)-field/bin/python -m tests.field.mcp_clients

# The table of docs/models.md, with the newest plugins.
field-table:
	rm -f $(VENV)-field/.installed-field
	$(MAKE) field FIELD='--write docs/models.md'

# To take an add-on out for good, do the same here.
drop:
	rm -rf build/drop-$(NAME)
	mkdir -p build/drop-$(NAME)
	git archive HEAD | tar -xf - -C build/drop-$(NAME)
	cd build/drop-$(NAME) && rm -r llm_kb/$(NAME) tests/$(NAME) && \
		sed -i.bak '/^    "$(NAME)",$$/d' llm_kb/addons.py && rm llm_kb/addons.py.bak && \
		git init --quiet . && git add --all && $(MAKE) docs lint types test

example: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps docs/examples/man_pages
	$(BIN)/python -m pytest docs/examples/man_pages
	$(BIN)/python -m pip uninstall --quiet --yes llm-kb-man-pages

FUZZ_SECONDS ?= 60

fuzz: $(VENV)/.installed-dev
	$(BIN)/python -m tests.fuzz $(FUZZ_SECONDS)

coverage: $(VENV)/.installed-dev
	$(BIN)/python -m pytest $(PYTEST_ARGS) --cov --cov-report=term

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

# What a contributor runs before a commit. The generated texts take half a minute, so they are
# compared only where something that they show was changed.
check: format lint types
	@if git diff --name-only --merge-base $(BASE) | grep -qE '^(llm_kb/commands|docs|README|sample_kb)'; \
		then $(MAKE) check-docs; fi
	$(BIN)/python scripts/changed_tests.py $(BASE)

BASE ?= main

format: $(VENV)/.installed-dev
	-$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format .

types: $(VENV)/.installed-dev
	$(BIN)/mypy

DOCUMENTS = README.md docs/*.md

docs: $(VENV)/.installed-dev
	$(BIN)/python -m cogapp -I . -r $(DOCUMENTS)

check-docs: $(VENV)/.installed-dev
	@$(BIN)/python -m cogapp -I . --check --diff $(DOCUMENTS) || { echo 'To bring them up to date: make docs' >&2; exit 1; }

# The site's packages are an environment of their own: nothing else needs them.
site:
	$(MAKE) VENV=$(VENV)-site $(VENV)-site/.installed-site
	rm -rf build/site
	$(VENV)-site/bin/python -m sphinx -W --keep-going -q docs build/site

bench: $(VENV)/.installed-dev
	@for name in starting matching capture searching growth reading tokens; do \
		echo "== $$name"; $(BIN)/python bench/$$name.py || exit 1; done

clean:
	rm -rf $(VENV) $(VENV)-base $(VENV)-lowest $(VENV)-site $(VENV)-field .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
