"""`policysim select`: one private choice among candidates."""

from __future__ import annotations

import argparse
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policysim.cli.options import Commands, add_json, add_ledger, add_seed, as_usage, names, number, study_levels

if TYPE_CHECKING:
    from policies.levels import FeatureLevels
    from policysim.release.ledger import Release
    from policysim.release.select_private import GroupChoice, Terms


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "select",
        help="one private choice: the candidate that most people have",
        description="Choose one candidate of a table of people or of counts, privately, and print what may be "
        "published. What the choice is worth is private: --analysis shows it. Each release of the same rows adds its "
        "ε: policysim-releases.json beside them, which is private, lists the releases, and the same question is "
        "answered a second time only with --again. Exit code 4 if it is asked again without, or if the claim of ε does "
        "not hold.",
    )
    parser.add_argument(
        "counts",
        type=Path,
        metavar="COUNTS",
        help="a CSV file with a row per person, or with --score a row per candidate",
    )
    parser.add_argument(
        "--epsilon",
        type=number("a number >= 0", lambda value: 0 <= value < math.inf),
        required=True,
        metavar="0.1",
        help="the privacy loss that is claimed",
    )
    parser.add_argument("--column", metavar="NAME", help="the column that holds the candidates")
    parser.add_argument("--score", metavar="NAME", help="the column that counts the people of each candidate")
    parser.add_argument("--candidates", type=names, metavar="A,B", help="all possible candidates, which are public")
    parser.add_argument("--by", metavar="NAME", help="choose for each group in this column, each with the whole ε")
    parser.add_argument("--groups", type=names, metavar="A,B", help="with --by: all possible groups, which are public")
    parser.add_argument(
        "--study",
        metavar="STUDY",
        help="take candidates and groups that are not listed here from a study",
    )
    parser.add_argument(
        "--split-by-share", action="store_true", help="split ε between the groups by their shares instead"
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
        "--analysis", action="store_true", help="also print counts and probabilities, which must not be published"
    )
    add_ledger(parser, "answer the same question about the same rows once more; the ε add up")
    add_seed(parser, "simulate, repeatably; this is not a release")
    add_json(parser)


def run(chosen: argparse.Namespace) -> int:
    """Choose; exit code 4 if the declared sensitivity is too small for the claim, or for a repetition."""
    import numpy as np

    from policysim.files.bad_rows import DataError
    from policysim.files.many_files import stamp
    from policysim.files.terminal import complain, print_json, progress_bar, say
    from policysim.output.screen import printed
    from policysim.question import EXIT_CHECK
    from policysim.release.counts_file import read_counts
    from policysim.release.ledger import digests, ledger_path, release_once
    from policysim.release.select_private import analysis_document, choices_by_group, release_document, select_screen

    terms, before = _terms(chosen), stamp(chosen.counts)
    of_study = study_levels(chosen.study) if chosen.study else {}
    sha256 = digests([chosen.counts])
    with progress_bar("B") as progress:
        counts = read_counts(
            chosen.counts,
            column=chosen.column,
            score=chosen.score,
            by=chosen.by,
            candidates=_declared(chosen.column, chosen.candidates, of_study),
            groups=_declared(chosen.by, chosen.groups, of_study),
            progress=progress,
        )
    if stamp(chosen.counts) != before:
        raise DataError(f"{chosen.counts.as_posix()}: was changed while it was read")
    found = choices_by_group(counts, terms)
    if chosen.seed is None:
        drawn = release_document(counts, terms, found, lambda selection: selection.release())
        # Nothing is shown before it is counted.
        ledger = chosen.ledger or ledger_path(chosen.counts)
        earlier = release_once(ledger, _release(chosen, sha256, counts.column, found, drawn), again=chosen.again)
        if earlier:
            drawn |= {"earlier": vars(earlier), "warnings": [*drawn["warnings"], earlier.warning]}
    else:
        rng = np.random.default_rng(chosen.seed)
        drawn = release_document(counts, terms, found, lambda selection: selection.sample(rng))
    for warning in drawn["warnings"]:
        complain(f"warning: {warning}")
    analysis = analysis_document(found) if chosen.analysis else None
    if chosen.json:
        simulated = None if chosen.seed is None else {"seed": chosen.seed, **drawn}
        released = drawn if chosen.seed is None else None
        document = {"release": released, "simulation": simulated}
        print_json(document | ({"analysis_not_private": analysis} if analysis else {}))
    else:
        say(printed(select_screen(drawn, chosen.seed, analysis)))
    return 0 if all(choice.holds for choice in found) else EXIT_CHECK


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


def _release(
    chosen: argparse.Namespace, sha256: tuple[str, ...], column: str, found: list[GroupChoice], drawn: dict[str, Any]
) -> Release:
    """The entry in the ledger. Asked again with another epsilon, mechanism or adjacency, it is the same question."""
    from policysim.release.ledger import Release

    answers = [(choice["group"], str(choice["candidate"])) for choice in drawn["choices"]]
    return Release(
        what="select",
        data=chosen.counts.name,
        sha256=sha256,
        columns=(column,),
        unchanged=(),
        epsilon=max(max(choice.epsilon, choice.loss) for choice in found),  # each person is in one group
        adjacency=chosen.adjacency,
        released=", ".join(name if group is None else f"{group}: {name}" for group, name in answers),
        question={"column": column, "score": chosen.score or "", "by": chosen.by or ""},
    )


def _terms(chosen: argparse.Namespace) -> Terms:
    """How to choose; UsageError for options that do not go together."""
    from policysim.question.protocol import UsageError
    from policysim.release.select_private import Terms

    if chosen.seed is not None and chosen.ledger is not None:
        raise UsageError("--ledger does not go with --seed: a simulation is no release, and is not counted")
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
        )
