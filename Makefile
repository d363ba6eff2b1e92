# Each target is one line that anyone can read. PYTHON picks the interpreter (3.11 or newer).
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
FAMILY ?= placement
CASES  ?= 2000
SEED   ?= $(shell date +%s)

.PHONY: setup demo test lint bench docs lock clean dist controlplane controlplane-build conformance \
	sizing-report test-mlflow

setup: $(VENV)/.runtime        ## make .venv; the command is .venv/bin/kubectl-gpu_admit

demo: $(VENV)/.runtime         ## explain four workloads against the shipped snapshot
	@examples/demo $(BIN)/kubectl-gpu_admit

test: $(VENV)/.dev lint        ## everything that must hold
	$(BIN)/python -m pytest

lint: $(VENV)/.dev             ## ruff, mypy --strict, import directions
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

bench: $(VENV)/.dev            ## speed and memory, as ratios in one run
	$(BIN)/python -m benchmarks

dist: $(VENV)/.runtime         ## archives for krew, and the manifest with their sha256 (needs network)
	$(BIN)/python release/archives.py

controlplane: $(VENV)/.dev     ## a real control plane with examples/ in it (CLUSTER=examples/devices); Ctrl-C ends it
	$(BIN)/python -m tests.controlplane.play $(if $(CLUSTER),--cluster $(CLUSTER))

controlplane-build: $(VENV)/.dev ## build Kubernetes' own programs for the tests (minutes when cold)
	$(BIN)/python -m tests.controlplane.binaries

conformance: $(VENV)/.dev      ## our answers beside Kubernetes' own: FAMILY=placement CASES=2000 SEED=1
	$(BIN)/python -m tests.controlplane.binaries referee
	$(BIN)/python -m tests.differential --family $(FAMILY) --cases $(CASES) --seed $(SEED)

sizing-report: $(VENV)/.dev    ## sizes beside what engines measured, row by row
	$(BIN)/python -m tests.sizing

docs: $(VENV)/.dev             ## write the generated pages anew
	$(BIN)/python -m docs.generate

test-mlflow: $(VENV)/.dev $(VENV)-mlflow/.server ## the model registry, against a real MLflow server
	GPU_ADMIT_REQUIRE_MLFLOW=1 $(BIN)/python -m pytest tests/mlflow

$(VENV)-mlflow/.server: requirements-mlflow.lock
	$(PYTHON) -m venv $(VENV)-mlflow
	$(VENV)-mlflow/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-mlflow.lock
	@touch $@

lock:                          ## resolve the dependencies anew (needs uv)
	uv pip compile -q --universal --no-annotate --generate-hashes --no-emit-index-url pyproject.toml -o requirements.lock
	uv pip compile -q --universal --no-annotate --generate-hashes --no-emit-index-url pyproject.toml --extra agent -o requirements-agent.lock
	uv pip compile -q --universal --no-annotate --generate-hashes --no-emit-index-url pyproject.toml --all-extras --group dev -o requirements-dev.lock
	uv pip compile -q --universal --no-annotate --generate-hashes --no-emit-index-url --group mlflow -o requirements-mlflow.lock

clean:                         ## remove what the targets made
	rm -rf $(VENV) $(VENV)-mlflow build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis benchmarks/.data

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: $(PYTHON) is older than Python 3.11; try: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: pyproject.toml requirements.lock | $(VENV)/bin/python
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps -e .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements-dev.lock
	@touch $@
