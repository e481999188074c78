# Needs only python3 (3.11 or newer, with venv and pip) and make. `make help` lists the targets.

PYTHON ?= python3
VENV ?= .venv
BENCH ?=
PYTEST ?=

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
INSTALL := $(PIP) install --quiet --editable

DEMO := .demo
DEMO_WHEEL := rapidocr-onnxruntime==1.4.4
DEMO_MODEL := ch_PP-OCRv4_det_infer

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test lint types check format bench clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## /{printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(BIN)/.oinfer-run $(DEMO)/$(DEMO_MODEL).onnx ## optimize a published text detection model and print what changed
	$(BIN)/oinfer-opt $(DEMO)/$(DEMO_MODEL).onnx $(DEMO)/$(DEMO_MODEL).opt.onnx

test: $(BIN)/.oinfer-test ## run the tests (PYTEST="-k name" to choose)
	$(BIN)/python -m pytest -n 2 -W error $(PYTEST)

lint: $(BIN)/.oinfer-dev ## check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(BIN)/.oinfer-dev ## check types
	$(BIN)/mypy

check: lint types test ## everything a change has to pass

format: $(BIN)/.oinfer-dev ## sort imports, fix what ruff can fix, format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(BIN)/.oinfer-bench ## measure on real models (BENCH="--models DIR --peers PYTHON ...")
	$(BIN)/python -m benchmarks $(BENCH)

clean: ## remove what make, pip and Python have made
	rm -rf $(DEMO) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -path './$(VENV)' -prune -o -type d -name __pycache__ -prune -exec rm -r {} +
	test ! -e $(BIN)/.oinfer-venv || rm -rf $(VENV)

# ------------------------------------------------------------------ setup, redone when pyproject.toml changes

# An environment that is already there is used, and `make clean` leaves it alone.
$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("oinfer-opt needs Python 3.11 or newer: make PYTHON=/path/to/python" if sys.version_info < (3, 11) else 0)'
	@echo "setting up $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { rm -f $@; exit 1; }
	@touch $(BIN)/.oinfer-venv

$(BIN)/.oinfer-run: pyproject.toml | $(BIN)/python
	$(INSTALL) .
	@touch $@

$(BIN)/.oinfer-test $(BIN)/.oinfer-dev $(BIN)/.oinfer-bench: $(BIN)/.oinfer-%: pyproject.toml | $(BIN)/python
	$(INSTALL) '.[$*]'
	@touch $@ $(BIN)/.oinfer-run

# The model is taken out of the wheel that publishes it; the wheel itself is never installed.
$(DEMO)/$(DEMO_MODEL).onnx: | $(BIN)/python
	@mkdir -p $(DEMO)/wheel
	$(PIP) download --quiet --no-deps --ignore-requires-python --only-binary=:all: --dest $(DEMO)/wheel $(DEMO_WHEEL)
	@$(BIN)/python -m zipfile -e $(DEMO)/wheel/*.whl $(DEMO)/wheel
	@mv $(DEMO)/wheel/rapidocr_onnxruntime/models/$(@F) $@
	@rm -r $(DEMO)/wheel
