"""The kinds of report: the function that makes each, the options that go with it, and its command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from policysim.errors import UsageError
from policysim.words import in_a_row

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from policysim.progress import Progress
    from policysim.report.report import Report
    from policysim.study.declared import Study

# The kinds, as messages name them.
SCENARIO, TABLE, LOG = "one decision in a scenario", "a table of one's own", "a log"
DAYS = "treatment over days in a scenario"
# Options that not every kind takes, and the kinds that do.
KINDS_WITH = {
    "epsilon": (SCENARIO, TABLE, LOG),
    "at_most": (SCENARIO, TABLE, LOG),
    "price_list": (SCENARIO, TABLE),
    "workers": (LOG,),
    "show_values": (LOG,),
    "cluster": (LOG,),
    "horizon": (DAYS,),
    "total_epsilon": (DAYS,),
    "delta": (DAYS,),
    "length_public": (DAYS,),
}
# Options that change neither a number nor a file of a report.
NOT_OF_A_REPORT = ("--out", "--json", "--full", "--brief", "--show-values")


def kind_of(study: Study, chosen: argparse.Namespace) -> str:
    """The kind of a study, with these options."""
    from policysim.study.declared import CohortStudy, LoggedStudy

    if isinstance(study, LoggedStudy):
        return LOG
    if isinstance(study, CohortStudy):
        return TABLE
    return SCENARIO if getattr(chosen, "horizon", None) is None else DAYS


def of_its_kind(study: Study, chosen: argparse.Namespace) -> Study:
    """The study as it is read; UsageError for the first option that does not go with its kind."""
    from policysim.study.declared import LoggedStudy

    kind = kind_of(study, chosen)
    for option, kinds in KINDS_WITH.items():
        value = getattr(chosen, option, None)
        # By identity: 0 is a value, and equal to False.
        if kind not in kinds and value is not None and value is not False:
            name = f"--{option.replace('_', '-')}"
            instead = ": give --total-epsilon" if kind == DAYS and option == "epsilon" else ""
            instead = ": add --horizon" if kind == SCENARIO and kinds == (DAYS,) else instead
            raise UsageError(f"{name} goes with {in_a_row(kinds, 'or')}, not with {kind} ({study.name}){instead}")
    if isinstance(study, LoggedStudy):
        return replace(study, log=replace(study.log, show_values=chosen.show_values))
    return study


def figure_names(kind: str) -> tuple[str, ...]:
    """The figures of a kind; a study has those that apply."""
    if kind == DAYS:
        from policysim.course import days_report

        return days_report.FIGURES
    if kind == LOG:
        from policysim.trials import trial_report

        return trial_report.FIGURES
    from policysim.decision import drawings

    return drawings.FIGURES


def report_of_study(
    study: Study,
    *,
    policies: Sequence[str] | None,
    epsilons: Sequence[float] | None,
    horizon: int | None,
    total_epsilons: Sequence[float] | None,
    delta: float,
    progress: Progress,
    length_public: bool = False,
    price_list: bool = False,
    counted: bool = False,
    executor: Executor | None = None,
) -> Report:
    """The report of a study, by its kind; the modules of each kind are only imported for it."""
    from policysim.study.declared import LoggedStudy, ModelledStudy, require_scenario

    if horizon is not None:
        if epsilons is not None:
            raise ValueError("epsilons go with one decision: over days give total_epsilons.")
        scenario = require_scenario(study)
        from policysim.course.days_report import report as report_days

        return report_days(
            scenario,
            horizon=horizon,
            total_epsilons=total_epsilons,
            delta=delta,
            length_public=length_public,
            policies=policies,
            progress=progress,
        )
    if isinstance(study, LoggedStudy):
        from policysim.trials.trial_report import report as report_trial

        return report_trial(
            study, policies=policies, epsilons=epsilons, counted=counted, executor=executor, progress=progress
        )
    from policysim.decision.report import report as report_decision

    assert isinstance(study, ModelledStudy)
    return report_decision(study, policies=policies, epsilons=epsilons, price_list=price_list, progress=progress)


def arguments_again(chosen: argparse.Namespace) -> tuple[str, ...]:
    """The command line that makes a report again, in any folder: one's own study is the study.toml beside it.

    That a log is counted changes its numbers; who counts it does not.
    """
    from policysim.study.study_reader import STUDY, study_names

    words = [chosen.command, chosen.study if chosen.study in study_names() else STUDY]
    for option, value in chosen.typed:
        if option in ("--workers", "--cluster"):
            words += ["--workers", "1"]
        elif option not in NOT_OF_A_REPORT:
            words += [option] if value is None else [f"{option}={value}"] if value.startswith("-") else [option, value]
    return tuple(words)


def arguments_of_python(
    study: str,
    *,
    policies: Sequence[str],
    epsilons: Sequence[float] | None,
    horizon: int | None = None,
    total_epsilons: Sequence[float] | None = None,
    delta: float = 0.0,
) -> tuple[str, ...]:
    """The same of a report that was made in Python, of a study by its name or path.

    Examples
    --------
    >>> arguments_of_python("covid", policies=["optimal"], epsilons=[0.1, 1])
    ('compare', 'covid', '--policy', 'optimal', '--epsilon', '0.1,1.0')
    """
    from policysim.study.study_reader import STUDY, study_names

    options = {
        "--policy": ",".join(policies),
        "--epsilon": ",".join(repr(float(epsilon)) for epsilon in epsilons or ()),
        "--horizon": "" if horizon is None else str(horizon),
        "--total-epsilon": ",".join(repr(float(total)) for total in total_epsilons or ()),
        "--delta": repr(float(delta)) if delta else "",
    }
    words = ["compare", study if study in study_names() else STUDY]
    return (*words, *(word for option, value in options.items() if value for word in (option, value)))
