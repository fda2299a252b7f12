"""`policysim init`: from a data file to a study file."""

from __future__ import annotations

import argparse
import os
import sys
import tomllib
from pathlib import Path

from policysim.cli.options import Commands, add_format, add_json, chosen_format, names

# By option: what stands for its value, and the question, which is its help, too.
QUESTIONS: dict[str, tuple[str, str]] = tomllib.loads(
    Path(__file__).with_name("init_questions.toml").read_text("utf-8")
)
# The others take several, with commas between or each with its option.
OF_ONE_VALUE = ("time", "event", "id", "cluster", "assigned")


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "init",
        help="write a study.toml for a file of treated patients",
        description="Look at a CSV or Parquet file with one row per treated patient, and write a commented study.toml "
        "that compare can run. What no option says is asked on a terminal; elsewhere init prints the columns, the "
        "questions and the command to type.",
    )
    parser.add_argument(
        "data", type=Path, metavar="DATA", help="a file with one row per patient (.csv, .tsv, .txt, .dat, .parquet)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="the study file to write, .toml (default: beside DATA)"
    )
    for option, (metavar, question) in QUESTIONS.items():
        if metavar:
            action = "store" if option in OF_ONE_VALUE else "append"
            parser.add_argument(f"--{option}", action=action, metavar=metavar, help=question)
    ways = parser.add_mutually_exclusive_group()
    for way, meaning in (("higher", "more of the outcome is better, or a later event"), ("lower", "less is better")):
        name = f"{way}-is-better"
        ways.add_argument(f"--{name}", action="append_const", dest="direction", const=name, help=meaning)
    add_format(parser, "DATA")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Write a study file from a trial's data, by answers of the user."""
    from policysim.errors import UsageError
    from policysim.files.terminal import complain, print_json, say
    from policysim.files.whole_files import write_files
    from policysim.logs.column_summary import columns_table, read_columns
    from policysim.logs.init_questions import InitAnswers
    from policysim.logs.study_text import checked, study_text

    path, stated, out = chosen.data, chosen_format(chosen), _study_path(chosen)
    columns = read_columns(path, stated)
    typed = {option: getattr(chosen, option.replace("-", "_")) for option in QUESTIONS}
    answers = InitAnswers(
        source=path.as_posix(),
        questions={option: question for option, (_, question) in QUESTIONS.items()},
        answers={
            option: texts if isinstance(texts, str) else ",".join(texts)
            for option, texts in typed.items()
            if texts is not None
        },
        command=["policysim", "init", str(path), *stated.options, *(["--out", str(chosen.out)] if chosen.out else [])],
        prompt=_prompt if sys.stdin.isatty() and sys.stdout.isatty() and not chosen.json else None,
        show=(lambda: None) if chosen.json else (lambda: say(columns_table(columns))),
        columns={column.name: column for column in columns},
        split=names,
    )
    data = {"file": str(path.resolve()), **stated.keys, **({} if stated.header else {"header": False})}
    data |= answers.section()
    try:
        source, rows = checked(data, out.parent)
    except (UsageError, ValueError):
        if answers.prompt:  # what was typed is not lost
            complain(f"Not written. {answers.type_next()}")
        raise
    data["file"] = _relative(path, out)
    text, screen = study_text(answers, data, source, rows, out.as_posix())
    write_files(out.parent, {out.name: text.encode()}, [path])
    if chosen.json:
        print_json({"study": out.as_posix(), "rows": answers.n_rows, "records": source.space.size, **data})
    else:
        say(screen)
    return 0


def _study_path(chosen: argparse.Namespace) -> Path:
    """Where the study file is to be written."""
    from policysim.errors import UsageError
    from policysim.files.many_files import csv_name

    data: Path = chosen.data
    if not data.name:
        raise UsageError(f"init needs a file of patients, got {str(data)!r}")
    out: Path = chosen.out or data.with_name(csv_name(data)).with_suffix(".toml")
    if out.suffix != ".toml":
        raise UsageError(f"--out must end in .toml, got {str(out)!r}")
    if out.exists():
        raise UsageError(f"{out.as_posix()} exists already: remove it, or choose another with --out FILE.toml")
    return out


def _prompt(text: str) -> str:
    """What is typed on the terminal."""
    from policysim.errors import UsageError
    from policysim.files.terminal import say

    say(text)
    line = sys.stdin.readline()
    if not line:
        raise UsageError("no answer: nothing was written")
    return line.strip()


def _relative(data: Path, out: Path) -> str:
    """The data's path from the folder of the study."""
    try:
        return Path(os.path.relpath(data.resolve(), out.parent.resolve())).as_posix()
    except ValueError:  # another drive
        return data.resolve().as_posix()
