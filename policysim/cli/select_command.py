"""`policysim select`: one private selection among candidates."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policysim.cli.options import (
    Commands,
    add_format,
    add_json,
    add_release,
    as_usage,
    check_release,
    chosen_format,
    chosen_ledger,
    chosen_people,
    names,
    number,
    study_levels,
)

if TYPE_CHECKING:
    from policies.levels import FeatureLevels
    from policysim.release.select_private import GroupChoice, Terms


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "select",
        help="select privately the candidate that most people have",
        description="Select one candidate of a table of people or of counts, privately, and print a text that may be "
        "published. --analysis also shows how good the selection is, which is private. The ledger adds up the ε of "
        "all releases about the same people. Exit code 4 if that would exceed the budget, or if the claim of ε does "
        "not hold.",
    )
    parser.add_argument(
        "counts",
        type=Path,
        metavar="COUNTS",
        help="a file with a row per person, or with --score a row per candidate (.csv, .tsv, .txt, .dat, .parquet)",
    )
    parser.add_argument(
        "--epsilon",
        type=number("a finite number >= 0", lambda value: 0 <= value < math.inf),
        required=True,
        metavar="0.1",
        help="the claimed privacy loss",
    )
    parser.add_argument("--column", metavar="NAME", help="the column that holds the candidates")
    parser.add_argument("--score", metavar="NAME", help="the column that counts the people of each candidate")
    parser.add_argument("--candidates", type=names, metavar="A,B", help="all possible candidates, which are public")
    parser.add_argument("--by", metavar="NAME", help="choose for each group in this column, each with the whole ε")
    parser.add_argument("--groups", type=names, metavar="A,B", help="with --by: all possible groups, which are public")
    parser.add_argument(
        "--study",
        metavar="STUDY",
        help="take missing candidates and groups from a study",
    )
    parser.add_argument(
        "--split-by-share", action="store_true", help="with --by: split ε between the groups by their shares"
    )
    parser.add_argument(
        "--mechanism",
        default="permute-and-flip",
        metavar="NAME",
        help="permute-and-flip (default), exponential, exponential-monotone or report-noisy-max",
    )
    parser.add_argument(
        "--adjacency",
        default="replace-one",
        metavar="NAME",
        help="replace-one (default; the number of people is public) or add-or-remove-one",
    )
    parser.add_argument(
        "--sensitivity",
        type=number("a number > 0", lambda value: 0 < value < math.inf),
        metavar="S",
        help="the declared sensitivity (default: the true one, from --adjacency)",
    )
    parser.add_argument("--proportions", action="store_true", help="score shares of people instead of their number")
    parser.add_argument(
        "--analysis", action="store_true", help="also print counts and probabilities; do not publish them"
    )
    add_release(parser)
    add_format(parser, "COUNTS")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Choose; exit code 4 beyond the budget, or if the declared sensitivity is too small for the claim."""
    import numpy as np

    from policysim.errors import EXIT_CHECK
    from policysim.files.bad_rows import DataError
    from policysim.files.columns_file import open_columns
    from policysim.files.many_files import file_digest, stamp
    from policysim.files.terminal import progress_bar
    from policysim.release.counts_file import read_counts
    from policysim.release.delivery import Draw, complain_uncounted, count_and_deliver
    from policysim.release.select_private import choices_by_group, release_document, release_of

    terms = _terms(chosen)
    before = stamp(chosen.counts)
    of_study = study_levels(chosen.study) if chosen.study else {}
    ledger, stated = chosen_ledger(chosen), chosen_format(chosen)
    columns = [name.strip() for name in open_columns(chosen.counts, stated).schema.names] if chosen.column else []
    people = chosen_people(chosen, ledger, columns, [chosen.column, chosen.by])
    request = repr(("select", terms, _asked(chosen), file_digest(chosen.counts))) if ledger else ""
    with progress_bar("B") as progress:
        counts = read_counts(
            chosen.counts,
            column=chosen.column,
            score=chosen.score,
            by=chosen.by,
            candidates=_declared(chosen.column, chosen.candidates, of_study),
            groups=_declared(chosen.by, chosen.groups, of_study),
            people=people,
            stated=stated,
            progress=progress,
        )
    if stamp(chosen.counts) != before:
        raise DataError(f"{chosen.counts.as_posix()}: was changed while it was read")
    found = choices_by_group(counts, terms)

    def drawn() -> dict[str, Any]:
        return release_document(counts, terms, found, lambda selection: selection.release())

    if ledger:
        release = release_of(counts, chosen.by, terms, found, each=bool(people.id))
        count_and_deliver(
            ledger,
            request,
            check=lambda: None,
            draw=lambda _: Draw(drawn(), release, people.digests),
            deliver=lambda _, answer: _show(chosen, answer, found),
        )
    elif chosen.uncounted:
        complain_uncounted(chosen.counts.name)
        _show(chosen, drawn(), found)
    else:
        rng = np.random.default_rng(chosen.simulate)
        _show(chosen, release_document(counts, terms, found, lambda selection: selection.sample(rng)), found)
    return 0 if all(choice.holds for choice in found) else EXIT_CHECK


def _show(chosen: argparse.Namespace, drawn: dict[str, Any], found: list[GroupChoice]) -> None:
    """Print the choices, and what must not be published if that was asked for."""
    from policysim.files.terminal import complain, print_json, say
    from policysim.release.select_private import analysis_document, select_screen

    for warning in drawn["warnings"]:
        complain(f"warning: {warning}")
    analysis = analysis_document(found) if chosen.analysis else None
    if chosen.json:
        released = drawn if chosen.simulate is None else None
        simulated = None if chosen.simulate is None else {"seed": chosen.simulate, **drawn}
        document = {"release": released, "simulation": simulated}
        print_json(document | ({"analysis_not_private": analysis} if analysis else {}))
    else:
        say(select_screen(drawn, chosen.simulate, analysis))


def _asked(chosen: argparse.Namespace) -> list[Any]:
    """What makes one question another, beside the terms."""
    names = ("column", "score", "by", "candidates", "groups", "study", "id", "rows_per_person")
    return [*(getattr(chosen, name) for name in names), chosen_format(chosen)]


def _declared(
    column: str | None, listed: list[str] | None, of_study: Mapping[str, FeatureLevels]
) -> FeatureLevels | None:
    """The candidates, or the groups, that are listed, or else those that a study has for their column."""
    from policies.levels import Levels, codes_of_keys

    if listed is None:
        return of_study.get(column or "")
    levels = Levels(column or "--candidates", listed)
    with as_usage():
        codes_of_keys(levels, [])
    return levels


def _terms(chosen: argparse.Namespace) -> Terms:
    """How to choose; UsageError for options that do not go together."""
    from policysim.errors import UsageError
    from policysim.release.select_private import Terms

    check_release(chosen)
    if chosen.id is not None and chosen.score is not None:
        raise UsageError("--id does not go with --score: where rows are counts, no row is a person's")
    if chosen.split_by_share and chosen.by is None:
        raise UsageError("--split-by-share only goes with --by")
    if chosen.groups is not None and chosen.by is None:
        raise UsageError("--groups only goes with --by")
    named = [name for name in (chosen.column, chosen.score, chosen.by) if name is not None]
    if len(set(named)) != len(named):
        raise UsageError("--column, --score and --by must name different columns")
    with as_usage():
        return Terms(
            epsilon=chosen.epsilon,
            mechanism=chosen.mechanism,
            adjacency=chosen.adjacency,
            sensitivity=chosen.sensitivity,
            proportions=chosen.proportions,
            split_by_share=chosen.split_by_share,
            rows_each=chosen.rows_per_person or 1,
        )
