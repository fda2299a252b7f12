"""Hostile command lines: each is done, or ends with a documented exit code and a line; nothing is half written."""

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import drawings
import pytest
from hostile_files import (
    COHORTS,
    LEDGERS,
    LOG,
    MANIFESTS,
    NOTES,
    NUMBERS,
    PATIENTS,
    PEOPLE,
    POLICY,
    STUDIES,
    TEXTS,
    TRIALS,
    damaged_files,
    file_bytes,
    finds,
    hostile,
    in_folder,
)
from hypothesis import event, given
from hypothesis import strategies as st

from envs.toml_reader import UNSEEN
from policysim.cli.main import ADD, main
from policysim.cli.options import build_parser
from policysim.release.ledger import Ledger

# The options of each command, but those that reach another machine or take a day.
LEFT_OUT = {"--help", "--cluster", "--patients", "--horizon"}
OPTIONS = {
    name: [action for action in parser._actions if action.option_strings and not LEFT_OUT & {*action.option_strings}]
    for name, parser in build_parser(ADD)[1].choices.items()
}
VALUES = shlex.split(
    "1 0.1,1,inf 1e6 80% sex age arm sex=m,f arm=pill,placebo death=0.003 death=one-for-all greedy optimal "
    "one-feature exponential any-record sensitive svg frontier page table values 14 2 data.csv out.csv out study.toml "
    "cured patient dr ips linear replace-one add-or-remove-one people disease covid"
)
HIDDEN = "--column sex --column arm --epsilon 1 --levels sex=m,f --levels arm=pill,placebo,drip"
COMPARED = (
    *("compare study.toml --out out", "compare study.toml --full", "compare study.toml --out out --figures frontier"),
    *("choose study.toml --keep 0.5", "sensitivity study.toml", "simulate study.toml --patients 50 --log log.csv"),
)
EVALUATED = [f"evaluate data.csv --table policy.csv --estimator {name}" for name in ("ips", "snips", "dr")]
PRIVATE = [
    f"privatize data.csv {HIDDEN} --out out.csv {way} {counted}"
    for way in ("", "--as table", "--separately", "--id patient")
    for counted in ("--uncounted", "--ledger ledger.sqlite")
]
COMMANDS = (
    (STUDIES, COMPARED),
    (COHORTS, COMPARED),
    (TRIALS, COMPARED),
    ([{"data.csv": PATIENTS}], ["init data.csv", "init data.csv --outcome cured --treatment arm"]),
    (
        [{"data.parquet": PATIENTS}],
        ["init data.parquet", f"privatize data.parquet {HIDDEN} --out out.parquet --uncounted"],
    ),
    ([{"data.csv": PATIENTS}], PRIVATE),
    (LEDGERS, ["ledger import policysim-releases.json --ledger ledger.sqlite"]),
    ([{"data.csv": PEOPLE}], ["select data.csv --column disease --score people --by ward --epsilon 1 --uncounted"]),
    (NOTES, ["privatize data.csv --estimate"]),
    ([{"data.csv": LOG, "policy.csv": POLICY}], EVALUATED),
    ([{"data.csv": POLICY}], ["audit --table data.csv"]),
    (MANIFESTS, ["reproduce manifest.json"]),
)
# Names in these files, and what they could be called throughout.
NAMES = shlex.split("pill placebo arm sex age cured fever cough infected syrup young gene dose high wrong deaths ward")
HARD = [text for text in TEXTS if text.isprintable() and text.strip()] + ["x" * 2000, "ε = 1"]


def options_of(command):
    """Some options of a command, with values that fit or do not; none names a device that never ends."""
    values = st.sampled_from((*VALUES, *VALUES, *TEXTS, *map(repr, NUMBERS)))
    values = values.map(lambda text: text.replace("\x00", "0").replace("/dev/zero", "/dev/null"))
    option = st.sampled_from(OPTIONS[command]).flatmap(
        lambda action: st.tuples(st.just(max(action.option_strings, key=len)), *[values] * (action.nargs != 0))
    )
    return st.lists(option, max_size=4).map(lambda pairs: [word for pair in pairs for word in pair])


@st.composite
def commands(draw):
    """The files that a command reads, some damaged or renamed throughout, and its arguments."""
    alternatives, lines = draw(st.sampled_from(COMMANDS))
    if draw(st.booleans()):
        files = draw(damaged_files(*alternatives))
    else:
        files = {name: file_bytes(name, content) for name, content in draw(st.sampled_from(alternatives)).items()}
        old, new = draw(st.sampled_from(NAMES)), draw(st.sampled_from(HARD))
        files = {name: renamed(name, content, old, new) for name, content in files.items()}
    words = shlex.split(draw(st.sampled_from(lines)))
    return files, words + (draw(options_of(words[0])) if draw(st.booleans()) else [])


def renamed(file, content, old, new):
    """A file of text in which a name is another one throughout."""
    if file.endswith(".parquet"):
        return content
    quoted = json.dumps(new, ensure_ascii=False)
    if file.endswith(".csv"):
        quoted = '"' + new.replace('"', '""') + '"'
    return re.sub(rf'"{old}"|(?<![\w"]){old}(?![\w"])', lambda _: quoted, content.decode()).encode()


def tree():
    """All files and folders of the current one, and what the files hold."""
    return {str(path): path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}


def run(arguments):
    """The exit code of a command, which leaves nothing half written and prints nothing unseen."""
    before, out, err = tree(), *(io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        patch.setattr("policysim.decision.redraws.REDRAWS", 20)
        if "--figures" not in arguments:
            drawings.draw_only(patch)
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = stop.code
    printed, complaint = (stream.buffer.getvalue().decode() for stream in (out, err))
    assert code in (0, 2, 3, 4), complaint
    assert not UNSEEN.search((printed + complaint).replace("\n", ""))
    assert not [name for name in tree() if re.search(r"(^|/)\.", name)]
    if code not in (0, 4):
        assert complaint.strip()
        assert tree() == before
    return code


@hostile(4, slower=2)
@given(commands())
def test_hostile_commands_are_done_or_refused(command):
    files, arguments = command
    with in_folder(files):
        if "ledger.sqlite" in arguments:
            Ledger("ledger.sqlite", "2.5")
        event(f"exit code {run(arguments)}")


@pytest.mark.parametrize(("_", "files", "arguments"), finds("command"))
def test_commands_that_once_failed_are_done_or_refused(_, files, arguments):
    with in_folder(files):
        run(arguments)


@hostile(20)
@given(st.data())
def test_hostile_options_are_understood_or_refused(data):
    command = data.draw(st.sampled_from(sorted(OPTIONS)))
    options = data.draw(options_of(command))
    with in_folder({}):
        run([command, "nothing.toml", *options])
