"""The parser, options that several commands have, the study that they choose, and what the text of an option means.

The parser is argparse, whose refusals are one line like all others here (UsageError). A reader for `type=` raises
ArgumentTypeError with what is wanted and what was given; the parser puts the option's name before it.
"""

from __future__ import annotations

import argparse
import csv
import math
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeAlias

from policysim.errors import UsageError
from policysim.files.terminal import say

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from policies.levels import FeatureLevels, Levels
    from policysim.files.csv_format import CsvFormat
    from policysim.logs.log_source import LogSource
    from policysim.release.ledger import Ledger
    from policysim.release.people import People
    from policysim.study.declared import Study

ROWS = (".csv", ".parquet")
# In place of a column of ids: each row is a person.
NONE = "none"
# 0,5 and 0,05 and 1,05, which are one number where a comma stands for the point.
_DECIMAL_COMMA = re.compile(r"0,[0-9]+|[0-9]+,0[0-9]+")
_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+%?")
_WHOLE = re.compile(r"([0-9]{1,19}|[0-9]{1,3}(?:_[0-9]{3}){1,6})(?:[eE]\+?([0-9]{1,2}))?")

Commands: TypeAlias = "argparse._SubParsersAction[Parser]"
# Adds a command and its options.
Add: TypeAlias = Callable[[Commands], object]

# What argparse says of an option, and what is said here.
OWN_WORDS = {
    "expected one argument": "needs a value (behind = if it begins with -)",
    "ignored explicit argument": "takes no value, got",
    "not allowed with argument": "does not go with",
}


class Parser(argparse.ArgumentParser):
    """Refuses in one line: the option, what is wanted and what was given."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError; argparse calls it with "argument --option: what is wrong"."""
        name, colon, what = message.partition(": ")
        if name.startswith("argument ") and colon:
            for words, ours in OWN_WORDS.items():
                what = what.replace(words, ours)
            between = ": " if what.startswith("unknown ") else " "
            message = f"{name.removeprefix('argument ')}{between}{what}"
        raise UsageError(message)

    @property
    def options(self) -> Mapping[str, argparse.Action]:
        """The options by their names."""
        return self._option_string_actions

    def written_out(self, words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
        """Each option of a command line that was understood, by its full name, and its value as typed if it has one."""
        waiting = iter(words)
        for word in waiting:
            name, equals, value = word.partition("=")
            if not name.startswith("-") or name == "--":
                continue
            full = name if name in self.options else next(option for option in self.options if option.startswith(name))
            takes_value = self.options[full].nargs != 0
            yield full, value if equals else next(waiting) if takes_value else None

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help, for which argparse knows no closed stream."""
        say(message)

    def refuse_unknown(self, argument: str) -> NoReturn:
        """Refuse an argument that this command does not take."""
        name = argument.partition("=")[0]
        near = get_close_matches(name, self.options, n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        what = "option" if name.startswith("-") else "argument"
        self.error(f"unknown {what} {name!r}; {hint}{self.prog} --help lists all")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        choices = [str(choice) for choice in action.choices]
        if action.option_strings:
            raise argparse.ArgumentError(action, f"must be one of {', '.join(choices)}, got {value!r}")
        near = get_close_matches(str(value), choices, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        self.error(f"unknown command {value!r}; {hint}known: {', '.join(choices)}")


def build_parser(add: Sequence[Add]) -> tuple[Parser, Commands]:
    """The parser of some commands, in the order in which --help shows them."""
    parser = Parser(prog="policysim", description="What does choosing treatments privately cost the patients?")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for one in add:
        one(commands)
    return parser, commands


def parse(arguments: Sequence[str], add: Sequence[Add]) -> argparse.Namespace:
    """What a command line asks of some commands; UsageError if it is not understood.

    Its options as they were typed are `typed`, by their full names.
    """
    parser, commands = build_parser(add)
    chosen, rest = parser.parse_known_args(arguments)
    parser = commands.choices[chosen.command] if chosen.command else parser
    if rest:
        parser.refuse_unknown(next((argument for argument in rest if argument.startswith("-")), rest[0]))
    chosen.typed = list(parser.written_out(arguments))
    names = [name for name, _ in chosen.typed]
    for name in names:
        # argparse would take the last in silence.
        if names.count(name) > 1 and isinstance(parser.options[name], argparse._StoreAction):
            raise UsageError(f"{name} is given twice, and takes one value")
    return chosen


class _Version(argparse.Action):
    """Look the version up only when it is asked for."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        say(f"policysim {version('policysim')}\n")
        parser.exit()


def number(wanted: str, fits: Callable[[float], bool], *, sized: bool = True) -> Callable[[str], float]:
    """A number.

    Parameters
    ----------
    wanted : str
        Follows "must be".
    fits : callable
        Whether a number is one of these; False for NaN.
    sized : bool, optional
        Whether it is computed with as an epsilon is, and so must have such a size.
    """

    def read(text: str) -> float:
        value = _float(text)
        if not fits(value):
            raise ArgumentTypeError(f"must be {wanted}, got {text!r}")
        return _sized(value, text) if sized else value

    return read


def exact_epsilon(text: str) -> str:
    """An epsilon that is charged, as typed: each of its decimals counts."""
    number("a finite number >= 0", lambda value: 0 <= value < math.inf)(text)
    return text


def share(wanted: str, low: float = -math.inf, high: float = math.inf) -> Callable[[str], float]:
    """A number from `low` to `high`, also in per cent: 0.8 or 80%."""

    def read(text: str) -> float:
        bare = text.strip()
        value = _float(bare[:-1]) / 100 if bare.endswith("%") else _float(bare)
        if not math.isfinite(value):
            raise ArgumentTypeError(f"must be a number, got {text!r}")
        if not low <= value <= high:
            meant = f"; did you mean {bare}%?" if not bare.endswith("%") and 1 < value <= 100 * high else ""
            raise ArgumentTypeError(f"must be {wanted}, got {text!r}{meant}")
        return value

    return read


# One epsilon; infinity is no privacy.
one_epsilon = number("one number >= 0", lambda value: value >= 0)


def epsilons(text: str) -> list[float]:
    """Numbers >= 0 separated by commas, at least one; what looks like a decimal comma is refused.

    That is 0 and one whole number (0,5), and a number with a zero before its digits (1,05).

    Examples
    --------
    >>> epsilons("0.1, 1,inf"), epsilons("1,5"), epsilons("0.0,5")
    ([0.1, 1.0, inf], [1.0, 5.0], [0.0, 5.0])
    """
    parts = [part.strip() for part in text.split(",")]
    if _DECIMAL_COMMA.fullmatch(text.strip()):
        one, two = (text.strip().replace(",", point) for point in (".", ".0,"))
        raise ArgumentTypeError(f"must have decimal points, got {text!r}: type {one} for one number, or {two} for two")
    wrong = [part for part in parts if not _float(part) >= 0]
    if wrong:
        raise ArgumentTypeError(f"must be numbers >= 0 separated by commas, got {wrong[0] or text!r}")
    return [_sized(float(part), part) for part in parts]


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """A whole number within bounds: 1000000, 1_000_000 or 1e6.

    Examples
    --------
    >>> whole(2)("1e6")
    1000000
    """
    wanted = f">= {least:,}" if most is None else f"from {least:,} to {most:,}"

    def read(text: str) -> int:
        # int() would refuse thousands of digits in words of its own, and take 1_0.
        found = _WHOLE.fullmatch(text)
        value = int(found[1]) * 10 ** int(found[2] or 0) if found else -1
        if value < least or (most is not None and value > most):
            raise ArgumentTypeError(f"must be a whole number {wanted}, got {text!r}")
        return value

    return read


def names(text: str) -> list[str]:
    """Different names separated by commas; what is in quotes may hold some, and keeps its margins.

    Examples
    --------
    >>> names('north, "south, by the sea"')
    ['north', 'south, by the sea']
    """
    try:
        row = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise ArgumentTypeError(f"{text!r}: {error}") from None
    quoted = {name.replace('""', '"') for name in re.findall(r'(?:^|,) *"((?:[^"]|"")*)"', text)}
    found = [name if name in quoted else name.strip() for name in row]
    if not found or "" in found:
        raise ArgumentTypeError(f"must be names separated by commas, got {text!r}")
    for position, name in enumerate(found):
        if name in found[:position]:
            raise ArgumentTypeError(f"names {name!r} twice")
    return found


def bounds(text: str) -> list[tuple[str, float | str]]:
    """The most that is allowed of outcomes, per patient, separated by commas.

    Examples
    --------
    >>> bounds("death=0.003, symptoms=one-for-all")
    [('death', 0.003), ('symptoms', 'one for all')]
    """
    from policies.optimal.bounds import ONE_FOR_ALL

    found: list[tuple[str, float | str]] = []
    for part in names(text):
        name, _, amount = (word.strip() for word in part.partition("="))
        fixed = amount.replace("-", " ") == ONE_FOR_ALL
        if not name or not (fixed or 0 <= _float(amount) < math.inf):
            raise ArgumentTypeError(f"must be OUTCOME=NUMBER per patient, or OUTCOME=one-for-all, got {part!r}")
        found.append((name, ONE_FOR_ALL if fixed else float(amount)))
    return found


def add_bounds(parser: argparse.ArgumentParser, about: str) -> None:
    """--at-most, as often as wanted, and what it bounds."""
    parser.add_argument("--at-most", type=bounds, action="extend", metavar="death=0.003", help=about)


def chosen_bounds(chosen: argparse.Namespace, study: Study) -> dict[str, float | str]:
    """What --at-most bounds; UsageError for an outcome that the study has not, or one named twice."""
    from policysim.study.stated_bounds import fault_of_bound

    if chosen.at_most and not study.outcomes:
        raise UsageError("--at-most bounds costs in a log: its study needs [utility] costs, such as { pill = 0.1 }")
    found: dict[str, float | str] = {}
    for name, most in chosen.at_most or ():
        if fault := fault_of_bound(name, most, study.outcomes):
            raise UsageError(f"--at-most: {fault}")
        if name in found:
            raise UsageError(f"--at-most names {name!r} twice")
        found[name] = most
    return found


def folder(text: str) -> Path | None:
    """A folder; None, as if nothing was said, for empty text."""
    return Path(text) if text else None


def rows_file(text: str) -> Path:
    """A file of rows, of a kind that can be written."""
    if Path(text).suffix.lower() not in ROWS:
        raise ArgumentTypeError(f"must end in {' or '.join(ROWS)}, got {text!r}")
    return Path(text)


def _sized(value: float, text: str) -> float:
    """A number >= 0 that can be computed with; ArgumentTypeError for one that is too large or too small."""
    from envs.toml_reader import SIZES, is_epsilon

    if not is_epsilon(value):
        raise ArgumentTypeError(f"must be {SIZES}, got {text!r}")
    return value


def _float(text: str) -> float:
    """The number; NaN for anything else; ArgumentTypeError for digits that only infinity, or 0, is near."""
    from envs.toml_reader import as_float

    if _COMMA.fullmatch(text.strip()):
        raise ArgumentTypeError(f"must be one number with a decimal point, such as 0.5, got {text!r}")
    try:
        return as_float(text)
    except OverflowError as error:
        raise ArgumentTypeError(f"cannot be read: {error}") from None
    except ValueError:
        return math.nan


def add_study(parser: argparse.ArgumentParser) -> None:
    """STUDY and its choices."""
    parser.add_argument(
        "study", nargs="?", default="covid", metavar="STUDY", help="a built-in study or a study.toml (default: covid)"
    )
    parser.add_argument(
        "--adjacency", metavar="NAME", help="any-record, one-feature or sensitive, in place of the study's"
    )
    parser.add_argument(
        "--sensitive", type=names, action="extend", metavar="FEATURE", help="hide only these features: one, or one,two"
    )
    add_seed(parser, "the seed of random draws, in place of the study's")
    add_json(parser)


def add_policies(parser: argparse.ArgumentParser) -> None:
    """--policy, as many as wanted."""
    parser.add_argument(
        "--policy",
        type=names,
        action="extend",
        metavar="NAME",
        help="policies in place of the study's: one, or one,two, or all",
    )


def add_show_values(parser: argparse.ArgumentParser) -> None:
    """--show-values."""
    parser.add_argument(
        "--show-values",
        action="store_true",
        help="where a log is refused, show the wrong values of what is hidden",
    )


def add_seed(parser: argparse.ArgumentParser, about: str) -> None:
    """--seed, and what it is for."""
    parser.add_argument("--seed", type=whole(0), metavar="N", help=about)


def add_format(parser: argparse.ArgumentParser, what: str) -> None:
    """How a text file is written, where its beginning leaves that open."""
    from policysim.files.csv_format import SPACE, TAB, check_decimal, check_encoding, check_separator

    def read(check: Callable[[str], str]) -> Callable[[str], str]:
        def value(text: str) -> str:
            try:
                return check({"tab": TAB, "\\t": TAB, "space": SPACE}.get(text, text))
            except ValueError as error:
                raise ArgumentTypeError(str(error)) from None

        return value

    group = parser.add_argument_group(f"how {what} is written, if it is text; what is not stated is recognised")
    group.add_argument("--separator", type=read(check_separator), metavar=";", help='"," ";" "|", tab or space')
    group.add_argument("--decimal", type=read(check_decimal), metavar=",", help='"." or ","')
    group.add_argument("--encoding", type=read(check_encoding), metavar="NAME", help="such as latin-1 or utf-16")
    group.add_argument("--no-header", action="store_true", help="the first line is a row; columns are 0, 1 and so on")


def chosen_format(chosen: argparse.Namespace) -> CsvFormat:
    """What the options of `add_format` state."""
    from policysim.files.csv_format import CsvFormat

    return CsvFormat(not chosen.no_header, chosen.separator or "", chosen.decimal or "", chosen.encoding or "")


def add_release(parser: argparse.ArgumentParser) -> None:
    """How a release is counted, or that it is none; and whose rows there are."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--ledger",
        type=Path,
        metavar="LEDGER",
        help="count the release in this ledger of these people (policysim ledger new)",
    )
    group.add_argument("--uncounted", action="store_true", help="release without counting it in a ledger")
    group.add_argument(
        "--simulate", type=whole(0), metavar="SEED", help="simulate, repeatably; the output is no release"
    )
    parser.add_argument("--seed", type=_no_seed, help=argparse.SUPPRESS)
    parser.add_argument(
        "--id",
        metavar="COLUMN",
        help="the column of ids: each person in it is charged, not everybody; none: each row is a person",
    )
    parser.add_argument(
        "--rows-per-person",
        type=whole(1),
        metavar="N",
        help="with --id: use the first N rows of each person; ε hides all of them",
    )


def _no_seed(_: str) -> NoReturn:
    raise ArgumentTypeError("does not go with a release, which cannot be drawn again; --simulate SEED draws no release")


def check_release(chosen: argparse.Namespace) -> None:
    """UsageError unless exactly one way to count was chosen (argparse refuses two), and for rows without an id."""
    if chosen.ledger is None and not chosen.uncounted and chosen.simulate is None:
        raise UsageError(
            f"{chosen.command} needs a ledger, which counts the releases about these people: type policysim ledger new "
            "ledger.sqlite --budget 3 once, and add --ledger ledger.sqlite; or add --uncounted; or --simulate SEED, "
            "which releases nothing"
        )
    if chosen.rows_per_person is not None and chosen.id in (None, NONE):
        raise UsageError("--rows-per-person goes with --id COLUMN, which identifies the person of a row")


def chosen_ledger(chosen: argparse.Namespace) -> Ledger | None:
    """The ledger that counts, if one does."""
    from policysim.release.ledger import open_ledger

    return None if chosen.ledger is None else open_ledger(chosen.ledger)


def chosen_people(
    chosen: argparse.Namespace, ledger: Ledger | None, columns: Sequence[str], used: Collection[str | None]
) -> People:
    """Whose rows they are; where nobody says so, no column whose name is that of an id may repeat."""
    from policysim.logs.column_names import is_id, says
    from policysim.release.people import People

    digest = str.encode if ledger is None else partial(ledger.digest, "patient")
    if chosen.id is None:
        suspects = {name: says(name, "patient") for name in columns if is_id(name) and name not in used}
        return People(suspects=suspects, digest=digest)
    named = "" if chosen.id == NONE else chosen.id
    return People(named, chosen.rows_per_person, digest=digest)


def add_workers(parser: argparse.ArgumentParser) -> None:
    """--workers or --cluster."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--workers",
        type=whole(1),
        metavar="N",
        help="count the log in so many threads, file by file, in place of reading its rows into memory",
    )
    group.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="count the log on a Dask cluster that is running, such as tls://HOST:8786; its scheduler can run code "
        "here, so connect only to one that you trust",
    )


def asks_to_count(chosen: argparse.Namespace) -> bool:
    """Whether --workers or --cluster asks to count a log, also if it is in one file."""
    return chosen.workers is not None or chosen.cluster is not None


def chosen_executor(chosen: argparse.Namespace) -> AbstractContextManager[Executor | None]:
    """What counts the files of a log: several threads, a cluster, or None for this thread."""
    if chosen.cluster is not None:
        from policysim.logs.counted_log import cluster_executor

        return cluster_executor(chosen.cluster)
    if chosen.workers is not None and chosen.workers > 1:
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(chosen.workers)
    return nullcontext()


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")


def chosen_study(chosen: argparse.Namespace, **choices: Any) -> Study:
    """The study with the options of `add_study`, and with these; UsageError for what cannot be chosen."""
    from policysim.study.study_reader import load_study

    study = load_study(chosen.study)
    shared = {"adjacency": chosen.adjacency, "sensitive": chosen.sensitive, "seed": chosen.seed}
    with as_usage():
        return study.with_choices(**choices, **shared)


def study_levels(name: str) -> dict[str, FeatureLevels]:
    """The levels of what a study declares: of features, of treatments, and of a log's outcomes and events in codes.

    Treatments are those in the log's column, or in a column "treatment".
    """
    from policies.levels import Levels
    from policysim.study.declared import CohortStudy, LoggedStudy, require_scenario
    from policysim.study.study_reader import load_study

    study = load_study(name)
    features: dict[str, FeatureLevels] = {feature.name: feature for feature in study.space.features}
    if isinstance(study, LoggedStudy):
        return features | {column.name: column for column in _log_levels(study.log)}
    model = study.cohort if isinstance(study, CohortStudy) else require_scenario(study).scenario
    return features | {"treatment": Levels("treatment", model.actions)}


def _log_levels(log: LogSource) -> Iterator[Levels]:
    """The levels of a log's treatment, outcomes and event; with NA where rows without an outcome are expected."""
    from policies.levels import NO_VALUE, Levels
    from policysim.logs.log_source import REFUSE

    if log.treatments:
        treatments = [value for value, _ in log.treatments]
        yield Levels(log.treatment, treatments, unknown=log.unknown.get(log.treatment, ()))
    codes = {**log.codes, **({log.follow_up.event: log.follow_up.codes} if log.follow_up else {})}
    no_value = [] if log.missing == REFUSE else [NO_VALUE]
    for column, worth in codes.items():
        yield Levels(column, [*worth, *no_value], unknown=log.unknown.get(column, ()))


@contextmanager
def as_usage() -> Iterator[None]:
    """ValueError about what was asked for, as UsageError: it is the command line that is wrong, and no data."""
    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from None
