# Everything assumes only python3 (3.11 or newer, with venv) and make.
# Another one: make test PYTHON=python3.13 VENV=.venv-3.13
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.setup-stamp
SAMPLE := samples/decode-step-h100.ncu-rep
CODE := src tests bench tools

.PHONY: setup demo test static check fix golden bench docs passes-table cluster cluster-up cluster-vllm clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev,oracle,passes,lake]'
	@touch $@

# The main job on a shipped sample: a table here, a page to share.
demo: setup
	@mkdir -p out
	@$(BIN)/solscope analyze $(SAMPLE) --html out/demo.html
	@echo "Open out/demo.html"

test: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not cluster"

static: setup
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/mypy
	PYTHONPATH=src $(BIN)/lint-imports

check: static test

fix: setup
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/ruff format $(CODE)

# Rewrite the golden pages and the sample; look at the difference before you commit it.
golden: setup
	$(BIN)/python -m tools.make_sample
	SOLSCOPE_GOLDEN=rewrite $(BIN)/python -m pytest -q tests/golden tests/flows

bench: setup
	$(BIN)/python -m bench

# The generated pages of docs/reference and the picture of the README.
docs: setup
	$(BIN)/python -m tools.make_docs

# Real kubectl and real containers; needs root and Debian's runc (see tests/cluster/README.md).
cluster: setup
	$(BIN)/python -m tests.cluster.tools
	SOLSCOPE_REQUIRE_CLUSTER=1 SOLSCOPE_KUBECTL=$$($(BIN)/python -m tests.cluster.tools 1.37) \
	  $(BIN)/python -m pytest tests/cluster

# The same cluster by hand, until Ctrl-C.
cluster-up: setup
	@$(BIN)/python -m tests.cluster.tools >/dev/null
	@$(BIN)/python -m tests.cluster

# The real vLLM in that cluster: gigabytes and minutes, never part of another target.
cluster-vllm: setup
	$(BIN)/python -m tests.cluster.tools
	$(BIN)/python -m tests.cluster.realengine
	SOLSCOPE_REQUIRE_CLUSTER=1 $(BIN)/python -m pytest tests/cluster -m engine --durations=0

clean:
	rm -rf $(VENV) out

# The replay passes of every metric on every chip, from NVIDIA's library (needs the `passes` extra).
passes-table: setup
	$(BIN)/python -m tools.make_passes_table
