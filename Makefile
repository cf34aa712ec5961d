# Everything assumes only python3 (3.11 or newer, with venv) and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-stamp

.PHONY: setup demo test check fix golden bench docs

setup: $(STAMP)

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev,oracle]'
	@touch $@

test: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: setup
	$(BIN)/ruff check src tests
	$(BIN)/ruff format --check src tests
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports
	$(MAKE) test

fix: setup
	$(BIN)/ruff check --fix src tests
	$(BIN)/ruff format src tests
