# The README's two commands are `make demo` and `make test`; each builds .venv from nothing first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
READY := $(VENV)/.ready
DEMO := $(VENV)/.demo
WORKERS ?= 2

.PHONY: help install demo test lint nightly coverage bench bench-more results docs mutants lock dist clean

help:            ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 12

$(DEMO): pyproject.toml constraints.txt    # what the demo needs; Python compiles on first use, which saves half of the wait
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --no-compile --constraint constraints.txt --editable .
	@touch $@

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $(DEMO) $@

install: $(READY)    ## build .venv with the versions of constraints.txt

demo: $(DEMO)        ## FedAvg with and without FedReLa on imbalanced digits, about a minute
	$(BIN)/fedrela demo

lint: $(READY)       ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint           ## style, types and every test at its everyday counts
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q

nightly: $(READY)    ## every test at its nightly counts; resumes where it stopped (NIGHTLY=--keep: also after a change)
	$(BIN)/python tests/nightly.py --workers $(WORKERS) $(NIGHTLY)

coverage: $(READY)   ## branch coverage of the tests at their everyday counts
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -q --cov=fedrela --cov-branch --cov-report=term:skip-covered

bench: $(READY)      ## ratios to bare PyTorch, start and memory, pfl and Flower beside it, into docs/explanation/performance.md
	$(BIN)/python benchmarks/engine.py $(BENCH)

bench-more: $(READY) # re-labelling against NumPy, partitions, every algorithm, the Flower adapter: printed only
	for script in relabel data algorithms flower; do $(BIN)/python benchmarks/$$script.py || exit 1; done

results: $(READY)    ## docs/results from the records in results/ (fedrela results run: more records)
	$(BIN)/python docs/make_results.py
	$(BIN)/python docs/claims.py

# An environment in front of .venv: mutmut needs a later click, and a pytest below 9.
MUTMUT := $(VENV)/mutmut
$(MUTMUT): $(READY)
	$(PYTHON) -m venv $@
	$(BIN)/python -c 'import numpy, pathlib as p; print(p.Path(numpy.__file__).parents[1])' > $$(echo $@/lib/python3*/site-packages)/project.pth
	$@/bin/python -m pip --disable-pip-version-check install --quiet mutmut==3.8.0 'pytest<9'

mutants: $(MUTMUT)   ## changes of the code that no test notices, by mutmut; goes on where it stopped (MUTANTS="NAME ...": some)
	mkdir -p mutants/src    # Python leaves a folder that is not there when it starts out of its search
	PYTHONPATH=$(CURDIR)/mutants/src $(MUTMUT)/bin/mutmut run --max-children $(WORKERS) $(MUTANTS)
	$(MUTMUT)/bin/python tests/mutants.py

docs: $(READY)       ## HTML pages in docs/_build
	$(PIP) install --quiet --constraint constraints.txt --editable '.[docs]'
	$(BIN)/sphinx-build -W -q docs docs/_build

lock: $(READY)       ## requirements.lock: the versions of constraints.txt with the digests of their files
	grep -E '^[A-Za-z0-9._-]+==' constraints.txt | grep -v '^torch==' > .lock.in
	$(PIP) install --quiet --dry-run --ignore-installed --no-deps --report .lock.json --requirement .lock.in
	$(BIN)/python tools/dist.py lock .lock.json
	rm .lock.in .lock.json

dist: $(READY)       ## wheel and sdist, the same bytes every time, and a software bill of materials, into dist
	$(BIN)/hatchling build -d dist
	$(BIN)/python tools/dist.py sbom

clean:               ## remove what the other targets made
	rm -rf $(VENV) docs/_build build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .nightly mutants
