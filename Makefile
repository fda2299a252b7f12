# make report: everything from nothing to the report. make reports: all studies and their gallery. make test: the tests.
# make snapshots: the screens that the tests compare.
# make docs: the site, into docs/_build. make benchmark: all that is measured side by side, into benchmarks/RESULTS.md.
# make oracles: what peers find, as files that tests read; they need older packages and large ones, in an environment
# of their own.
# All else shares one virtual environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What decides what is installed: a change here installs again, nothing else does.
INPUTS := pyproject.toml constraints.txt

.PHONY: report reports test snapshots oracles lint docs benchmark clean

report: $(VENV)/.installed
	$(BIN)/policysim compare covid --price-list --out reports/covid

# What there is to make stands in the manifests, as questions: a new study is run by hand once, into a folder of its own.
reports: $(VENV)/.installed
	$(BIN)/python -m policysim.cli.gallery reports --make

# A worker for each core takes its share in the order of the files, and half of what another has left when it is done:
# a file stays with one worker nearly always, and what its tests share is made once.
# Bytecode is kept, whatever is usual here: without it every worker compiles all tests in each run, for a tenth of its time.
test: $(VENV)/.installed-test
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

# What is printed of some studies, as the tests compare it: read what changed before you commit it.
snapshots: $(VENV)/.installed-test
	$(BIN)/python tests/support/snapshots.py

oracles:
	$(PYTHON) -m venv .oracles
	.oracles/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/oracles/requirements.txt --editable .
	.oracles/bin/python tests/oracles/write_fixtures.py
	PYTHONPATH=examples .oracles/bin/python tests/oracles/write_learning.py

# -n: every reference must lead somewhere; -W: a warning is an error.
docs: $(VENV)/.installed-docs
	$(BIN)/python -m sphinx -q -W --keep-going -n -b html docs docs/_build

# Wants a quiet machine, and installs the peers into environments of their own, which are deleted in the end.
benchmark: $(VENV)/.installed
	$(BIN)/python benchmarks/results.py

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# PIP_CONSTRAINT holds for the build's own environment too, so that the backend's needs are the pinned ones.
install = PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m pip install --quiet --disable-pip-version-check

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(INPUTS) | $(BIN)/python
	$(install) --editable '.[all]'
	@touch $@

$(VENV)/.installed-test: $(INPUTS) | $(BIN)/python
	$(install) --editable '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: $(INPUTS) | $(BIN)/python
	$(install) --editable '.[all,docs]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-dev: $(INPUTS) | $(BIN)/python
	$(install) --editable '.[dev]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-test $(VENV)/.installed-docs

clean:
	rm -rf $(VENV) .oracles dist build docs/_build
