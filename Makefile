# make report: everything from nothing to the report. make reports: the scripts of examples/ and all studies, again.
# make test: the tests. make fuzz: hostile inputs to the readers and to whole commands, drawn at random.
# make net: every number of all reports and examples, beside the recorded ones; RUNS="ward covid" for some.
# make snapshots: the screens that the tests compare.
# make docs: the site, into docs/_build. make benchmark: all that is measured side by side, into benchmarks/RESULTS.md.
# make oracles: what peers find, as files that tests read; they need older packages and large ones, in environments of
# their own.
# All else shares one virtual environment.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What decides what is installed: a change here installs again, nothing else does.
INPUTS := pyproject.toml constraints.txt
# With HASHED=1, as in CI: only files with the hashes of requirements/, which are those for Linux on x86-64.
HASHED ?=
# So many hostile inputs to each reader, and half as many whole commands; with a SEED the same ones again.
N ?= 40
SEED ?=

.PHONY: report reports test fuzz net snapshots oracles lint docs benchmark clean

report: $(VENV)/.installed-report
	$(BIN)/policysim compare covid --price-list --out reports/covid

# The scripts that write a report each, below reports/; the first four take seconds, the others minutes.
SCRIPTS := source_documents/sock_groups source_documents/common_disease source_documents/marital_status \
	source_documents/adult_age_sex experiments/warfarin_known_doses experiments/stroke_calibration \
	experiments/randomise_or_decide experiments/learning_on_private_columns
# Studies of trials that have a folder of their own.
TRIALS := actg175 ist ist-14-days

reports: $(VENV)/.installed
	for script in $(SCRIPTS); do $(BIN)/python examples/$$script.py || exit 1; done
	$(BIN)/policysim compare covid --price-list --out reports/covid
	$(BIN)/policysim compare covid --horizon 14 --out reports/covid-14-days
	$(BIN)/policysim compare stroke --price-list --out reports/stroke
	$(BIN)/policysim compare warfarin --price-list --out reports/warfarin
	for name in $(TRIALS); do $(BIN)/policysim compare reports/$$name/study.toml --out reports/$$name || exit 1; done
	$(BIN)/python reports/index.py

# A worker for each core takes its share in the order of the files, and half of what another has left when it is done:
# a file stays with one worker nearly always, and what its tests share is made once.
# Bytecode is kept, whatever is usual here: without it every worker compiles all tests in each run, for a tenth of its time.
test: $(VENV)/.installed-test
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n auto --dist worksteal $(ARGS)

# make test draws a few of these inputs, always the same.
fuzz: $(VENV)/.installed-test
	FUZZ_INPUTS=$(N) $(BIN)/python -m pytest tests/fuzz $(if $(SEED),--hypothesis-seed=$(SEED)) $(ARGS)

# Before and after a change that must not change a number. All runs took 40 minutes on two cores beside other work.
net: $(VENV)/.installed
	$(BIN)/python benchmarks/net/net.py $(RUNS)

# What is printed of some studies, as the tests compare it: read what changed before you commit it.
snapshots: $(VENV)/.installed-test
	$(BIN)/python tests/support/snapshots.py

oracles:
	$(PYTHON) -m venv .oracles
	.oracles/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/oracles/requirements.txt --editable .
	.oracles/bin/python tests/oracles/write_fixtures.py
	.oracles/bin/python tests/oracles/write_learning.py
	$(PYTHON) -m venv .oracles/d3rlpy
	.oracles/d3rlpy/bin/python -m pip install --quiet --disable-pip-version-check --requirement tests/oracles/requirements-d3rlpy.txt
	.oracles/d3rlpy/bin/python tests/oracles/write_d3rlpy.py

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

pip = $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Of a file of requirements/, and the extras that it stands for. PIP_CONSTRAINT holds for the build's own environment too,
# so that the backend's needs are the pinned ones; with hashes they are installed first.
install = $(if $(HASHED),\
	$(pip) --require-hashes -r requirements/build.txt -r requirements/$(1).txt && \
	$(pip) --no-deps --no-build-isolation --editable .,\
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(pip) --editable '.$(2)')

comma := ,

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

# What the main job needs, and no more.
$(VENV)/.installed-report: $(INPUTS) | $(BIN)/python
	$(call install,report)
	@touch $@

$(VENV)/.installed: $(INPUTS) | $(BIN)/python
	$(call install,all,[all])
	@touch $@ $(VENV)/.installed-report

$(VENV)/.installed-test: $(INPUTS) | $(BIN)/python
	$(call install,test,[test])
	@touch $@ $(VENV)/.installed $(VENV)/.installed-report

$(VENV)/.installed-docs: $(INPUTS) | $(BIN)/python
	$(call install,docs,[all$(comma)docs])
	@touch $@ $(VENV)/.installed $(VENV)/.installed-report

$(VENV)/.installed-dev: $(INPUTS) | $(BIN)/python
	$(call install,dev,[dev])
	@touch $@ $(VENV)/.installed $(VENV)/.installed-report $(VENV)/.installed-test $(VENV)/.installed-docs

clean:
	rm -rf $(VENV) .oracles dist build docs/_build
