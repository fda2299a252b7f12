"""Whole commands that are fuzzed: the files that they read, changed or not, and options that fit or do not."""

import json
import re
import shlex
from pathlib import Path

from inputs import (
    COHORT,
    COHORT_ROWS,
    FOLLOW_UP,
    LOG,
    PATIENTS,
    PEOPLE,
    POLICY,
    REDRAWS,
    STUDY,
    TRIAL,
    either,
    make_cohort,
    make_ledger,
    make_manifest,
    make_note,
    make_scenario,
    make_study,
    make_trial,
    table_file,
    whole,
)
from mutants import NUMBERS, TEXTS

from policysim.cli.main import ADD
from policysim.cli.options import build_parser

# The options of each command, as argparse knows them.
OPTIONS = {
    name: [action for action in parser._actions if action.option_strings and "--help" not in action.option_strings]
    for name, parser in build_parser(ADD)[1].choices.items()
}
WORDS = shlex.split(
    "1 0.1,1,inf 1e6 80% sex age arm sex=m,f arm=pill,placebo deaths=0.003 deaths=one-for-all greedy optimal "
    "one-feature exponential any-record sensitive svg frontier page table values 14 2 data.csv out.csv out study.toml "
    "cured patient dr ips linear replace-one add-or-remove-one people disease covid"
)
# What reaches another machine, or takes a day.
LEFT_OUT = ("--cluster", "--patients", "--horizon")
# Names in the files, and what they could be called.
NAMES = (
    *shlex.split("pill placebo arm sex age cured fever cough infected syrup young gene dose high wrong deaths disease"),
    *("Flu", "ward", "p_pill", "m", "A small study", "A trial", "nothing"),
)
HARD = (
    *(text for text in TEXTS if text.isprintable() and text.strip()),
    *("a_b^c", "$\\frac{1$", "$$", "x" * 2000, "ε = 1", "a, b", "{{ x }}", "1.0", "-"),
)
COMPARED = (
    *("compare study.toml --out out", "compare study.toml --out out --full", "choose study.toml --keep 0.5"),
    *("compare study.toml --out out --figures frontier", "sensitivity study.toml"),
)
HIDDEN = "--column sex --column arm --epsilon 1 --levels sex=m,f --levels arm=pill,placebo"


def make_options(rng):
    """The arguments of a command line."""
    command = rng.choice(list(OPTIONS))
    return {}, [command, *options(rng, command, 6)]


def options(rng, command, most):
    """Fewer options than these of a command, with values that fit, or do not."""
    found = []
    for _ in range(rng.randrange(most)):
        action = rng.choice(OPTIONS[command])
        option = max(action.option_strings, key=len)
        if option not in LEFT_OUT:
            value = str(rng.choice(WORDS if rng.random() < 0.6 else (*TEXTS, *NUMBERS)))
            found += [option] if action.nargs == 0 else [option, _word(value)]
    return found


def _word(text):
    """A text as a command line can have it; no device that never ends."""
    return text.replace("\x00", "0").replace("/dev/zero", "/dev/null")


def _study(rng):
    return make_study(rng) if rng.random() < 0.5 else {"study.toml": STUDY.encode(), **make_scenario(rng)}


def _people(rng):
    return {**table_file(rng, PEOPLE), **either(rng, lambda: make_ledger(rng), {})}


def _patients(rng):
    return either(rng, lambda: table_file(rng, PATIENTS), {"data.csv": whole(PATIENTS)})


def _private(rng):
    return {**_patients(rng), **either(rng, lambda: make_ledger(rng), {})}


def _evaluated(rng):
    return {**table_file(rng, LOG), **table_file(rng, POLICY, "policy")}


def _audited(rng):
    return {**table_file(rng, POLICY), "study.toml": STUDY.encode()}


# Files, what of them is whole in half of all cases (else nothing would come as far as the answer), and command lines.
ASKED = (
    (_study, {"study.toml": (STUDY,)}, COMPARED),
    (make_cohort, {"study.toml": (COHORT,), "data.csv": COHORT_ROWS, "redraws.csv": REDRAWS}, COMPARED),
    (make_trial, {"study.toml": (TRIAL, FOLLOW_UP), "data.csv": PATIENTS}, COMPARED),
    (_study, {"study.toml": (STUDY,)}, ("simulate study.toml --patients 50 --log log.csv",)),
    (_patients, {"data.csv": PATIENTS}, ("init {data}", "init {data} --outcome cured --treatment arm")),
    (
        _private,
        {"data.csv": PATIENTS},
        (
            *(
                f"privatize {{data}} {HIDDEN} --out out{{ending}}",
                f"privatize {{data}} {HIDDEN} --out out.csv --as table",
            ),
            f"privatize {{data}} {HIDDEN} --out out{{ending}} --separately",
        ),
    ),
    (_people, {"data.csv": PEOPLE}, ("select {data} --column disease --score people --by ward --epsilon 1",)),
    (make_note, {}, ("privatize data.csv --estimate",)),
    (
        _evaluated,
        {"data.csv": LOG, "policy.csv": POLICY},
        tuple(f"evaluate {{data}} --table {{policy}} --estimator {name}" for name in ("ips", "snips", "dr")),
    ),
    (_audited, {"data.csv": POLICY}, ("audit --table {data}",)),
    (make_manifest, {}, ("reproduce manifest.json",)),
)


def make_command(rng):
    """A command with files that it takes, changed or not, and some options."""
    make, clean, lines = rng.choice(ASKED)
    files = make(rng)
    if rng.random() < 0.5:
        files |= {
            name: whole(found) if not isinstance(found, tuple) else rng.choice(found).encode()
            for name, found in clean.items()
            if name in files
        }
    if rng.random() < 0.4:
        old, new = rng.choice(NAMES), rng.choice(HARD)
        files = {name: renamed(name, content, old, new) for name, content in files.items()}
    data, policy = (next((name for name in files if name.startswith(stem)), "") for stem in ("data.", "policy."))
    given = shlex.split(rng.choice(lines).format(data=data, ending=Path(data).suffix, policy=policy))
    if rng.random() < 0.04:
        given[1] = _word(rng.choice(TEXTS))
    return files, given + (options(rng, given[0], 3) if rng.random() < 0.5 else [])


def renamed(file, content, old, new):
    """A file in which a name is another one throughout."""
    said = json.dumps(new, ensure_ascii=False)
    pattern = rf'"{old}"|(?<![\w"]){old}(?![\w"])'
    if file.endswith(".csv"):
        said = '"' + new.replace('"', '""') + '"' if {",", '"'} & set(new) else new
    elif not file.endswith(".toml"):
        return content
    try:
        return re.sub(pattern, lambda _: said, content.decode()).encode()
    except UnicodeDecodeError:
        return content
