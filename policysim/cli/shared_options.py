"""Options that several commands have, and the study that they choose."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from policysim.cli.option_types import names, whole

if TYPE_CHECKING:
    from policysim.study.declared import Study


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
    add_seed(parser, "for what is drawn at random, in place of the study's")
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


def add_seed(parser: argparse.ArgumentParser, about: str) -> None:
    """--seed, and what it is for."""
    parser.add_argument("--seed", type=whole(0), metavar="N", help=about)


def add_json(parser: argparse.ArgumentParser) -> None:
    """--json."""
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of text")


def chosen_study(
    chosen: argparse.Namespace,
    *,
    epsilons: Sequence[float] | None = None,
    policies: Sequence[str] | None = None,
    by: Sequence[str] | None = None,
) -> Study:
    """The study with the options of `add_study`, and with these; UsageError for what cannot be chosen."""
    from policies.catalogue import CATALOGUE
    from policysim.study.study_file import load_study

    study = load_study(chosen.study)
    with as_usage():
        return study.with_choices(
            epsilons=epsilons,
            policies=list(CATALOGUE) if policies and "all" in policies else policies,
            by=by,
            adjacency=chosen.adjacency,
            sensitive=chosen.sensitive,
            seed=chosen.seed,
        )


@contextmanager
def as_usage() -> Iterator[None]:
    """ValueError about what was asked for, as UsageError: it is the command line that is wrong, and no data."""
    from policysim.question.protocol import UsageError

    try:
        yield
    except ValueError as error:
        raise UsageError(str(error)) from None
