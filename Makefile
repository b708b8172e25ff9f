# `make reproduce` and `make test` need Python 3.11 or newer and nothing else: they build .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help bootstrap reproduce test bench docs lint format clean

help:
	@echo "make reproduce the paper at a glance, on whatever data is there: tables, figures, report.html"
	@echo "make test      run the test suite"
	@echo "make bench     speed and memory against the dense form and the machine's limit, into results/bench/"
	@echo "make docs      the documentation, into docs/_build/html"
	@echo "make lint      ruff (check and format) and mypy"
	@echo "make format    let ruff rewrite what lint would refuse"
	@echo "make clean     remove $(VENV)"

bootstrap: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "capsroute needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt -e ".[dev]"
	touch $@

reproduce: $(READY)
	$(BIN)/capsroute reproduce glance --profile quick

test: $(READY)
	$(BIN)/python -m pytest

bench: $(READY)
	$(BIN)/capsroute bench --out results/bench/speed.json

docs: $(READY)
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "docs/_build/html/index.html"

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV)
