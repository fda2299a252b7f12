"""`policysim compare`: policies over ε; which question a study and its options ask."""

from __future__ import annotations

import argparse
import shlex
from argparse import ArgumentTypeError
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from policysim.cli.options import (
    Commands,
    add_bounds,
    add_policies,
    add_study,
    add_workers,
    as_usage,
    asks_to_count,
    chosen_bounds,
    chosen_executor,
    epsilons,
    folder,
    names,
    number,
    whole,
)
from policysim.words import MOST_DAYS

if TYPE_CHECKING:
    from policysim.output.deliver import FigureFiles
    from policysim.question.protocol import StudyQuestion

# A number of days.
horizon = whole(1, MOST_DAYS)
# Options that have another name in a manifest.
RENAMED = {"epsilon": "epsilons", "policy": "policies", "total_epsilon": "total_epsilons"}


def formats(text: str) -> tuple[str, ...]:
    """Kinds of figure files, separated by commas, in the order of `FORMATS`."""
    from policysim.output.deliver import FORMATS

    asked = [part.strip() for part in text.split(",")]
    for name in asked:
        if name not in FORMATS:
            raise ArgumentTypeError(f"must be among {', '.join(FORMATS)}, separated by commas, got {name!r}")
    return tuple(kind for kind in FORMATS if kind in asked)


def add(commands: Commands) -> None:
    """The command and its options."""
    parser = commands.add_parser(
        "compare",
        help="compare policies over ε; prints a screen and writes a report",
        description="Compare policies over ε: print one screen and write a table, figures and a report. Numbers are "
        "exact for a scenario and have intervals for a log.",
    )
    add_study(parser)
    parser.add_argument("--epsilon", type=epsilons, metavar="0.1,1,10", help="the values of ε, in place of the study's")
    add_policies(parser)
    add_bounds(parser, "what optimal-safe keeps, in place of the study's: the most of an outcome expected per patient")
    parser.add_argument(
        "--by",
        type=names,
        action="extend",
        metavar="FEATURE",
        help="report each level of these features: one, or one,two",
    )
    parser.add_argument("--out", type=folder, metavar="DIR", help="where to write (default: reports/STUDY)")
    parser.add_argument(
        "--format", type=formats, metavar="svg,png,pdf", help="the kinds of figure files (default: svg,png)"
    )
    parser.add_argument(
        "--figure-size",
        choices=("page", "column", "slide"),
        metavar="NAME",
        help="page, column or slide: what the figures are sized for",
    )
    parser.add_argument(
        "--figures",
        type=names,
        metavar="NAME,NAME",
        help="which figures are drawn and written, such as frontier (default: all)",
    )
    parser.add_argument(
        "--price-list", action="store_true", help="also print what hiding each single feature costs at best"
    )
    parser.add_argument("--full", action="store_true", help="also print the tables behind the screen")
    add_workers(parser)
    parser.add_argument(
        "--horizon", type=horizon, metavar="14", help="treat over this many days, within one total ε for all of them"
    )
    parser.add_argument(
        "--total-epsilon",
        type=epsilons,
        metavar="1,2,5,10",
        help="with --horizon: the total ε of the course (default: these)",
    )
    parser.add_argument(
        "--delta",
        type=number("a number in [0, 1)", lambda value: 0 <= value < 1),
        metavar="1e-6",
        help="with --horizon: the δ of (ε, δ)-privacy (default: 0)",
    )
    parser.add_argument(
        "--length-public",
        action="store_true",
        help="with --horizon: the end of a stay is public, and need not be hidden",
    )


def run(chosen: argparse.Namespace) -> int:
    """Ask, answer, print and write."""
    from dataclasses import replace

    from policysim.errors import UsageError
    from policysim.output.deliver import DEFAULT, FigureFiles, deliver
    from policysim.output.manifest import KEYS
    from policysim.question.protocol import refuse
    from policysim.study.cells import words_of
    from policysim.study.study_reader import study_path

    given = {RENAMED.get(name, name): value for name, value in vars(chosen).items()}
    # By identity: 0 is a value, and equal to False.
    options = {key: given[key] for key in KEYS if given.get(key) is not None and given[key] is not False}
    kind, study = kind_and_study(study_path(chosen.study), options)
    refuse(kind, vars(chosen), study.name)
    if chosen.at_most:
        options["at_most"] = chosen_bounds(chosen, study)
    if asks_to_count(chosen):
        options["counted"] = True
    with as_usage():
        question: Any = kind.of(study, options)
    size, drawn = chosen.figure_size or DEFAULT.size, tuple(chosen.figures or ())
    # Before anything is computed: what cannot be drawn of this study is found out when it is.
    known = [figure.name for figure in words_of(kind.kind).figures]
    for name in drawn:
        if name not in known:
            raise UsageError(f"--figures: must be among {', '.join(known)}, separated by commas, got {name!r}")
    wanted = FigureFiles(chosen.format or DEFAULT.formats, size, drawn)
    command = command_line(chosen.study, options, wanted)
    with chosen_executor(chosen) as executor:
        if executor:
            # No option of a manifest: what counts changes no number.
            question = replace(question, executor=executor)
        return deliver(
            question,
            command=command,
            given=list(options),
            out=chosen.out,
            wanted=wanted,
            as_json=chosen.json,
            full=chosen.full,
        )


def kind_and_study(path: Path, options: Mapping[str, Any], name: str = "") -> tuple[type[StudyQuestion], Any]:
    """Which question is asked, over days, of a log, or of a scenario; and its study.

    The modules of each kind are only imported for it.

    Parameters
    ----------
    path : Path
        The study's file.
    options : mapping
        By the names of a manifest.
    name : str, optional
        What the study is called, if not as its file.
    """
    from policysim.study.declared import LoggedStudy
    from policysim.study.study_reader import load_study

    study = load_study(path, name)
    if "horizon" in options:
        from policysim.course.course_question import CourseQuestion

        return CourseQuestion, study
    if isinstance(study, LoggedStudy):
        from policysim.trials.trial_question import TrialQuestion

        return TrialQuestion, study
    from policysim.decision.decision_question import DecisionQuestion

    return DecisionQuestion, study


def command_line(study: str, options: Mapping[str, Any], wanted: FigureFiles, verb: str = "compare") -> str:
    """What asks this on a command line in any folder, for people: own studies are the study.toml beside the report.

    Examples
    --------
    >>> from policysim.output.deliver import DEFAULT
    >>> command_line("covid", {"epsilons": [0.1, 1.0], "price_list": True, "at_most": {"death": 1e-6}}, DEFAULT)
    'policysim compare covid --epsilon 0.1,1 --price-list --at-most death=1e-06'
    """
    from policysim.output.deliver import DEFAULT
    from policysim.study.study_reader import STUDY, study_names

    words = ["policysim", verb, study if study in study_names() else STUDY]
    names_here = {key: name for name, key in RENAMED.items()}
    for key, value in options.items():
        flag = f"--{names_here.get(key, key).replace('_', '-')}"
        if key == "counted":
            words += ["--workers", "1"]
        elif value is True:
            words.append(flag)
        elif isinstance(value, dict):
            words += [flag, ",".join(f"{name}={str(most).replace(' ', '-')}" for name, most in value.items())]
        else:
            items = value if isinstance(value, list) else [value]
            texts = [f"{item:.15g}" if isinstance(item, float) else str(item) for item in items]
            words += [flag, ",".join(f'"{text}"' if "," in text else text for text in texts)]
    words += ["--format", ",".join(wanted.formats)] if wanted.formats != DEFAULT.formats else []
    words += ["--figure-size", wanted.size] if wanted.size != DEFAULT.size else []
    words += ["--figures", ",".join(wanted.names)] if wanted.names else []
    return shlex.join(words)
