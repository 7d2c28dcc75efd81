# make demo, make test: from a fresh machine, with nothing but Python and make.
# PYTHON picks the interpreter, VENV the folder of the environment, CONSTRAINTS a file of versions to pin, WORKERS how many
# tests run at the same time.

PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?=
WORKERS ?= 2
BIN = $(VENV)/bin
INSTALLED = $(VENV)/installed

.PHONY: demo test lint types tests bench clean

demo: $(INSTALLED)
	$(BIN)/costcalc show 8b

test: lint types tests

lint: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(INSTALLED)
	$(BIN)/mypy

tests: $(INSTALLED)
	$(BIN)/pytest -n $(WORKERS)

bench: $(INSTALLED)
	$(BIN)/python tests/bench/startup.py
	$(BIN)/python tests/bench/throughput.py
	$(BIN)/python tests/bench/verify.py

# Byte code is compiled here, once: an editable install would otherwise compile at every start where none may be written.
$(INSTALLED): pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS)) --editable '.[dev]'
	$(BIN)/python -m compileall -q costcalc
	touch $@

clean:
	rm -rf .venv .venv-* .pytest_cache .mypy_cache .ruff_cache dist
