PYTHON ?= python3
BIN := .venv/bin
VENV := .venv/.created
DEMO := .venv/.installed-demo
ACTIVE := .venv/.installed

.PHONY: help browser java demo test test-fast models lint format bench scale study experiments intervals dependence skeptical rules clean
help:
	@echo "make demo    a first look: learn, decide, and see what abstaining achieves"
	@echo "make test    all tests and doctests"
	@echo "make test-fast   all but the browser, Spark, clusters, kills and simulations (90 seconds once it is compiled)"
	@echo "make models  the recipes of docs/models.md, with the real libraries (4 GB in .venv-models)"
	@echo "make lint    style, types and layers"
	@echo "make bench   measure speed and memory, write docs/performance.md"
	@echo "make scale   measure streams, many labels and clusters, write docs/scale.md (half an hour)"
	@echo "make study   compare learners and calibrations on published data, write docs/learners.md"
	@echo "make experiments   repeat the papers' experiments on published data, write docs/experiments.md (two hours)"
	@echo "make intervals   measure what intervals of probabilities are worth, write docs/intervals-measured.md (ten minutes)"
	@echo "make dependence  measure what joint distributions of labels are worth, write docs/dependence-measured.md (an hour)"
	@echo "make skeptical   compare skeptical predictions with partial abstention, write docs/skeptical.md (a minute or two)"
	@echo "make rules   compute the quadrature rules anew (about half an hour)"

# A fresh Debian or Ubuntu keeps venv in a package of its own.
$(VENV):
	$(PYTHON) -m venv .venv || (rm -rf .venv && apt-get update && apt-get install -y python3-venv && $(PYTHON) -m venv .venv)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

# The demo, and the first steps that `abstain --help` names, need less than half of what the tests do.
$(DEMO): $(VENV) pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[files,plot,report]"
	touch $@

$(ACTIVE): $(VENV) pyproject.toml
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $(DEMO) $@

# The tests look at the report in a real browser; where none can be installed they say so and are skipped.
browser:
	@command -v chromium || command -v chromium-browser || command -v google-chrome \
	|| (apt-get update && apt-get install -y chromium) \
	|| echo "no Chromium here: the tests of the report's page will be skipped"

# Spark runs on Java; without it the tests of Spark are skipped.
java:
	@command -v java \
	|| (apt-get update && apt-get install -y openjdk-17-jre-headless) \
	|| echo "no Java here: the tests of Spark will be skipped"

demo: $(DEMO)
	$(BIN)/abstain demo

test: $(ACTIVE) browser java
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

test-fast: $(ACTIVE)
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal -m "not slow"

# Libraries of models are large, and pin versions of others: they have an environment of their own.
MODELS := torch==2.13.0 accelerate catboost jax lightgbm onnxruntime skl2onnx skorch spacy transformers xgboost

.venv-models/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-models
	.venv-models/bin/python -m pip install --quiet --upgrade pip
	.venv-models/bin/python -m pip install --quiet $(MODELS) hypothesis pytest --editable .
	touch $@

models: .venv-models/.installed
	.venv-models/bin/python -m pytest tests/integrations/test_models.py

lint: $(ACTIVE)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(ACTIVE)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(ACTIVE)
	$(BIN)/python -m benchmarks

scale: $(ACTIVE)
	$(BIN)/python -m benchmarks.scale

study: $(ACTIVE)
	$(BIN)/python -m benchmarks.study

experiments: $(ACTIVE)
	$(BIN)/python -m benchmarks.experiments

intervals: $(ACTIVE)
	$(BIN)/python -m benchmarks.intervals

dependence: $(ACTIVE)
	$(BIN)/python -m benchmarks.dependence

skeptical: $(ACTIVE)
	$(BIN)/python -m benchmarks.skeptical

rules: $(ACTIVE)
	$(BIN)/python -m pip install --quiet ".[rules]"
	$(BIN)/python tools/reciprocal_rules.py

clean:
	rm -rf .venv .venv-models build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
