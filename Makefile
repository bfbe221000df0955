# Every target sets itself up from a fresh clone: you need only Python >= 3.11 and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup test test-slow lint docs bench demo clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    train CONS and IQL on a small environment and compare them, in demo/"
	@echo "make test    run the tests, except for the slow ones"
	@echo "make test-slow  run the slow tests"
	@echo "make lint    check style, types and the rooms' contracts"
	@echo "make docs    build the documentation site, in site/"
	@echo "make bench   measure speed on one core"
	@echo "make clean   remove what the other targets made"

setup: $(READY)

$(READY): pyproject.toml constraints.txt src/consmarl/version.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "consmarl needs Python 3.11 or newer; run make with PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

# A module's tests share what they train and compile; the longest modules come first (tests/conftest.py). Tests start
# many processes, so compiled Python code is kept even where the environment says otherwise.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist loadscope --no-loadscope-reorder

test: $(READY)
	$(PYTEST) -m "not slow"

test-slow: $(READY)
	$(PYTEST) -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Warnings, dead links and missing anchors are errors. The variable silences a notice about the next major version of MkDocs.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(READY)
	$(BIN)/python -m benchmarks.environments
	$(BIN)/python -m benchmarks.learning
	$(BIN)/python -m benchmarks.sharing
	$(BIN)/python -m benchmarks.methods
	$(BIN)/python -m benchmarks.python_environments
	$(BIN)/python -m benchmarks.workbench
	$(BIN)/python -m benchmarks.viewer

# What was finished before is not run again: `make clean` begins anew. The page of exchanges and the GIF take a core each.
TAUGHT := demo/runs/pgm-3ag/cons/seed-54
demo: $(READY)
	$(BIN)/consmarl sweep --config examples/demo.json --out demo/runs
	$(BIN)/consmarl view $(TAUGHT) --staged 20 --without-sharing & page=$$!; \
		$(BIN)/consmarl watch $(TAUGHT) --out demo/cons.gif && wait $$page
	$(BIN)/consmarl report demo/runs --out demo/report.html --title "IQL and CONS on a small Patient Gold Miner"
	@echo "Open demo/report.html with a browser: curves, intervals, both policies at work, and who taught whom what."
	@echo "$(TAUGHT)/exchange.html opens with an exchange that mattered."

clean:
	rm -rf $(VENV) demo site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
