"""policysim: what does choosing treatments privately cost the patients?

A row imports only rows above it; `envs` (the patients) and `policies` (the private draw) are above all.

errors, progress, numbers, words   what all parts share
utility    from outcomes and their weights to u(x, a)
files      CSV, Parquet, bad rows, files written whole
figures    from a table to a figure
sklearn    a private classifier for scikit-learn
logs       reading logs of treatments, and guessing their columns
study      what was asked: the study, its file, the problem made from it
release    what leaves the house: a treatment for each patient, privatised columns, a private selection from counts
report     findings, words, page and folder of any report; the same folder made again
course     decisions over days, and any process
decision   one decision: compare, choose, audit, limit
trials     what a log says about policies
cli        the command line, a module each command

The names below are loaded when they are first used, so that `import policysim` costs nothing; study.registration adds
the environments to Gymnasium when that is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Never

from policysim.study.registration import refuse_others, register

# The package of this name is loaded before the function `report` is defined: loaded later, it would take its name.
import_module("policysim.report")

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd
    from numpy.typing import ArrayLike

    from envs.scenario_reader import load_scenario
    from policies import local
    from policies.adjacency import AnyRecord, OneFeature, Sensitive
    from policies.catalogue import make_policy
    from policies.fitted import FittedPolicy
    from policies.policy import Policy
    from policies.privacy_loss import PrivacyLoss, guess_rate, privacy_loss
    from policies.private_model import privatize_policy
    from policies.problem import DecisionProblem
    from policies.sampler import Sampler
    from policies.selection import Selection, select
    from policies.sensitivity import Sensitivity, sensitivity
    from policysim import figures
    from policysim.course.budget import PrivacyBudget
    from policysim.course.course_limit import course_limit
    from policysim.course.evaluate import evaluate
    from policysim.course.once import OncePlan, plan_once
    from policysim.course.plan_tree import TreePlan, plan_tree
    from policysim.course.planning import plan, policy_value
    from policysim.course.process import InfiniteLossWarning, Process
    from policysim.course.tabular import TabularMDP
    from policysim.course.treatment_course import build_course
    from policysim.decision.beliefs import beliefs
    from policysim.decision.frontier import frontier
    from policysim.decision.publishing import ways_to_publish
    from policysim.decision.record_risk import record_risk
    from policysim.decision.trade_off import privacy_profile, trade_off
    from policysim.logs.read_log import read_log
    from policysim.progress import Progress
    from policysim.release.decide import decide
    from policysim.release.ledger import Ledger
    from policysim.release.private_cells import private_cells
    from policysim.report.report import Report
    from policysim.study.cohort_table import problem_from_frame
    from policysim.study.declared import Study
    from policysim.study.study_problem import build_problem
    from policysim.study.study_reader import load_study
    from policysim.trials.estimators import OffPolicyEstimate
    from policysim.trials.evaluate_log import evaluate_log

_HOME = {
    "AnyRecord": "policies.adjacency",
    "DecisionProblem": "policies.problem",
    "FittedPolicy": "policies.fitted",
    "InfiniteLossWarning": "policysim.course.process",
    "Ledger": "policysim.release.ledger",
    "OffPolicyEstimate": "policysim.trials.estimators",
    "OncePlan": "policysim.course.once",
    "OneFeature": "policies.adjacency",
    "PrivacyBudget": "policysim.course.budget",
    "PrivacyLoss": "policies.privacy_loss",
    "Sampler": "policies.sampler",
    "Selection": "policies.selection",
    "Sensitive": "policies.adjacency",
    "Sensitivity": "policies.sensitivity",
    "Study": "policysim.study.declared",
    "TabularMDP": "policysim.course.tabular",
    "TreePlan": "policysim.course.plan_tree",
    "beliefs": "policysim.decision.beliefs",
    "build_course": "policysim.course.treatment_course",
    "build_problem": "policysim.study.study_problem",
    "course_limit": "policysim.course.course_limit",
    "decide": "policysim.release.decide",
    "evaluate": "policysim.course.evaluate",
    "evaluate_log": "policysim.trials.evaluate_log",
    "figures": "policysim.figures",
    "frontier": "policysim.decision.frontier",
    "guess_rate": "policies.privacy_loss",
    "load_scenario": "envs.scenario_reader",
    "load_study": "policysim.study.study_reader",
    "local": "policies.local",
    "make_policy": "policies.catalogue",
    "plan": "policysim.course.planning",
    "plan_once": "policysim.course.once",
    "plan_tree": "policysim.course.plan_tree",
    "policy_value": "policysim.course.planning",
    "privacy_loss": "policies.privacy_loss",
    "private_cells": "policysim.release.private_cells",
    "privacy_profile": "policysim.decision.trade_off",
    "privatize_policy": "policies.private_model",
    "problem_from_frame": "policysim.study.cohort_table",
    "read_log": "policysim.logs.read_log",
    "record_risk": "policysim.decision.record_risk",
    "select": "policies.selection",
    "sensitivity": "policies.sensitivity",
    "trade_off": "policysim.decision.trade_off",
    "ways_to_publish": "policysim.decision.publishing",
}

__all__ = [
    "AnyRecord",
    "DecisionProblem",
    "FittedPolicy",
    "InfiniteLossWarning",
    "Ledger",
    "OffPolicyEstimate",
    "OncePlan",
    "OneFeature",
    "PrivacyBudget",
    "PrivacyLoss",
    "Sampler",
    "Selection",
    "Sensitive",
    "Sensitivity",
    "Study",
    "TabularMDP",
    "TreePlan",
    "beliefs",
    "build_course",
    "build_problem",
    "compare",
    "course_limit",
    "decide",
    "evaluate",
    "evaluate_log",
    "figures",
    "frontier",
    "guess_rate",
    "load_scenario",
    "load_study",
    "local",
    "make_policy",
    "plan",
    "plan_once",
    "plan_tree",
    "policy_value",
    "privacy_loss",
    "privacy_profile",
    "private_cells",
    "privatize_policy",
    "problem_from_frame",
    "read_log",
    "record_risk",
    "report",
    "select",
    "sensitivity",
    "smallest_epsilon",
    "trade_off",
    "ways_to_publish",
]


def __getattr__(name: str) -> object:
    """Load a public name on first use (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'policysim' has no attribute {name!r}")
    home = import_module(_HOME[name])
    # `local` and `figures` are packages themselves.
    value = home if name in ("figures", "local") else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted(__all__)


def compare(
    problem: DecisionProblem | Process,
    *,
    policies: Sequence[str | Policy | FittedPolicy] | None = None,
    epsilons: Sequence[float] | float | None = None,
    by: Sequence[str] = (),
    total_epsilons: Sequence[float] | float | None = None,
    delta: float = 0.0,
    continuation: str = "private",
    advance: Callable[[], object] | Progress = lambda: None,
) -> pd.DataFrame:
    """Evaluate policies exactly at several epsilons, overall and per group: of one decision, or over all days.

    Parameters
    ----------
    problem : DecisionProblem or Process
        What is to be decided, once or day by day: a process is a `TabularMDP`, treatment over days (`build_course`), or
        whatever has the same attributes (`policysim.course.process.Process`).
    policies : sequence of str, Policy or FittedPolicy, optional
        Names from the catalogue, or policies whose epsilon is replaced, also those of fitted ones; best-fixed,
        exponential, exponential-fitted, randomized-response, the optimum and, if an outcome leads, optimal-safe by
        default.
    epsilons : sequence of float, optional
        Values >= 0, of one decision; 24 from 0.05 to 20 by default.
    by : sequence of str, optional
        Features of the records (of a process: of its first states) whose levels are evaluated one by one.
    total_epsilons : sequence of float, optional
        Of a process with a horizon, in place of `epsilons`: what all decisions on one patient may reveal together.
    delta : float, optional
        Of the totals, which are then those of (epsilon, delta)-privacy (`PrivacyBudget`).
    continuation : {"private", "optimal"}, optional
        Of a process: whether each day's Q-values expect the policy's own choices on the days that follow, or the best.
    advance : callable or Progress, optional
        Called after each policy and epsilon that is evaluated.

    Returns
    -------
    DataFrame
        Of one decision, one row per policy, epsilon and group (everyone first, as group = level = "all"). Means are per
        patient of the group, under the prior; V is the expected utility.

        - `policy`, `epsilon`, `group`, `level`: the keys of the row
        - `share`: probability of the group
        - `value`: V
        - `loss`: V(greedy) - V
        - `normalized_loss`: loss / (V(greedy) - V(uniform)); may exceed 1; NaN where greedy gains nothing
        - `benefit_kept`: (V - V(best-fixed)) / (V(greedy) - V(best-fixed)); may be negative; NaN where that difference
          is 0 but for the rounding of sums. If it is small beside the loss of equal odds, pages and screens do not
          print it (`policysim.study.gain.Gain`)
        - `best_action_rate`: probability of the best action
        - `p_*`: of each action, 0 where it is not allowed (`DecisionProblem.admissible`): greedy, best-fixed
          and uniform choose among what is allowed, and best-fixed has one action for all who allow the same
        - `expected_*`, `extra_*`: each outcome of the problem, and its excess over best-fixed, which gives each group
          what is best for everyone
        - `epsilon_spent`: exact privacy loss under the problem's adjacency, the same for all groups
        - `guess_rate`: how often an observer tells two equally likely neighbours apart, at most, under this policy
          (`policies.guess_rate`), the same for all groups; at most e^epsilon_spent / (1 + e^epsilon_spent), but
          no promise in its place: it does not cover several treatments. NaN where it takes too long to compute
        - `guarantee`: the privacy loss that the policy claims not to exceed
        - `loss_bound`: upper bound on the loss from theory (McSherry & Talwar 2007), NaN where there is none
        - `least_loss`: no epsilon-private policy loses less, in units of utility; only in the rows of the optimum (or
          its bounds) of everyone, and only where a certificate says so that rational arithmetic has accepted
          (`policies.proof`), rounded down; else NaN. Under one-feature it can be far below the optimum
        - `most_kept`: no epsilon-private policy keeps more of the benefit: `least_loss` as a share, rounded up

        Of a process the same, without `best_action_rate`, `p_*`, `guess_rate`, `guarantee` and the limits, but that

        - `epsilon`: is that of one decision, or the largest that one day has within a total
        - `horizon`: the number of decisions; inf without a horizon
        - `value`: V, the expected return. Where rewards may go on for ever under the policy, -inf if all are <= 0, inf
          if they are >= 0, NaN if they are mixed or if the end takes more than 1e12 steps
        - `benefit_kept`, `extra_*`: are against the best constant action, the same on all days (and for all who allow
          the same, if that never changes); NaN where no constant action is admissible everywhere and has a value
        - `epsilon_spent`: the largest exact privacy loss of one decision; infinite if states allow different
          actions and the mask is not public
        - `total_epsilon`: the total as asked for; else the sum of the exact losses of all days, which the whole course
          never exceeds (basic composition, which holds for states that depend on earlier actions); without a horizon
          inf, or 0
        - `total_spent`, `composition`, `delta`: within a total, what the course spends at most at this delta, and what
          proves it (`policysim.course.composition.composed`); of a policy that takes no epsilon the sum of its losses
        - `hides`: "course", any two courses of states within the total; "one state", the state of each decision within
          `epsilon_spent`, but no course within any epsilon; or "nothing"
        - `continuation`: "private" or "optimal", as above; "optimal" for greedy

    Raises
    ------
    ValueError
        For something else than a problem or a process, an unknown policy or group, a policy that cannot be used on the
        problem (`NotApplicableError`), or an epsilon that is not a number >= 0.
    ClaimError, NoTableError
        If no policy of one decision is what it says: one that reveals more than it claims, or gives no table of
        probabilities. One of several is left out with a warning.
    """
    from policies.problem import DecisionProblem  # noqa: PLC0415 - as all public names, when it is first used

    if isinstance(problem, DecisionProblem):
        if total_epsilons is not None or delta != 0 or continuation != "private":
            raise ValueError(
                "total_epsilons, delta and continuation are for a process of several decisions, such as a TabularMDP: "
                "for one decision give epsilons."
            )
        from policysim.decision.comparison import compare_problem  # noqa: PLC0415

        return compare_problem(problem, policies=policies, epsilons=epsilons, by=by, advance=advance)
    if total_epsilons is not None:
        from policysim.course.course_comparison import compare_totals  # noqa: PLC0415

        if epsilons is not None or continuation != "private":
            raise ValueError(
                "give epsilons (of one decision) or total_epsilons (of all decisions together, with "
                'continuation="private").'
            )
        return compare_totals(
            problem, total_epsilons=total_epsilons, delta=delta, policies=policies, by=by, advance=advance
        )
    from policysim.course.course_comparison import compare_process  # noqa: PLC0415

    if delta != 0:
        raise ValueError(f"delta goes with total_epsilons, got delta={delta!r}.")
    return compare_process(
        problem, policies=policies, epsilons=epsilons, by=by, continuation=continuation, advance=advance
    )


def report(
    of: DecisionProblem | Study | str | Path,
    *,
    epsilons: Sequence[float] | float | None = None,
    policies: Sequence[str | Policy | FittedPolicy] | Mapping[str, ArrayLike] | None = None,
    horizon: int | None = None,
    total_epsilons: Sequence[float] | float | None = None,
    delta: float = 0.0,
) -> Report:
    """Report on a problem or a study: what privacy costs, who is harmed, and what an observer learns.

    The same as `policysim compare`. On a terminal and in a notebook it shows its progress after two seconds.

    Parameters
    ----------
    of : DecisionProblem, Study, str or Path
        A problem of one's own, or a study of a scenario, a cohort or a log: loaded, by its built-in name, or by the
        path of its file.
    epsilons : sequence of float or float, optional
        Values >= 0; the study's, or 24 from 0.05 to 20, by default. The printed table is about the study's epsilon, or
        about 1, or about the nearest to it.
    policies : sequence of str, Policy or FittedPolicy, or mapping of str to array, optional
        Names from the catalogue; for a problem also policies whose epsilon is replaced, and tables of probabilities of
        one's own by their titles. Each has a column. The study's, or those of `compare`, by default.
    horizon : int, optional
        Treat over so many days; of the study of a scenario.
    total_epsilons : sequence of float or float, optional
        With `horizon`: what all days may reveal together; 1, 2, 5 and 10 by default.
    delta : float, optional
        With `horizon`: of (epsilon, delta)-privacy.

    Returns
    -------
    Report
        Printed, it is the screen of `policysim compare`. `.findings` has all numbers of the screen, `.tables` those of
        the files by name, such as "options" and "comparison", and `.figures` the figures, such as "frontier".
        `.save(folder)` writes a page, the tables and the figures.

    Raises
    ------
    ValueError
        For an unknown policy, a policy that cannot be used on the problem (`NotApplicableError`), or an epsilon that is
        not a number >= 0; for something else than a problem or a study.

    Examples
    --------
    >>> from policies import AnyRecord, DecisionProblem
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> found = report(problem, epsilons=[0.5, 1.0], policies=["exponential"])
    >>> found.findings.options["epsilon"].unique().tolist()
    [0.5, 1.0]
    """
    from dataclasses import replace  # noqa: PLC0415 - as all public names, when it is first used
    from pathlib import Path  # noqa: PLC0415

    from policies.problem import DecisionProblem  # noqa: PLC0415
    from policysim.cli.kinds import arguments_of_python, report_of_study  # noqa: PLC0415
    from policysim.decision.report import report as report_decision  # noqa: PLC0415
    from policysim.files.terminal import progress_bar  # noqa: PLC0415
    from policysim.study.declared import Study  # noqa: PLC0415
    from policysim.study.study_reader import load_study  # noqa: PLC0415

    values = [epsilons] if isinstance(epsilons, int | float) else epsilons
    totals = [total_epsilons] if isinstance(total_epsilons, int | float) else total_epsilons
    if horizon is None and (totals is not None or delta != 0):
        raise ValueError("total_epsilons and delta go with a horizon, such as horizon=14.")
    if isinstance(of, DecisionProblem):
        if horizon is not None:
            raise ValueError("a horizon goes with the study of a scenario: a DecisionProblem is one decision.")
        with progress_bar() as progress:
            return report_decision(of, policies=policies, epsilons=values, progress=progress)
    if not isinstance(of, Study | str | Path):
        raise ValueError(f"report takes a DecisionProblem, a study, its name or the path of its file, got {of!r}.")
    if policies is not None and len(policies) == 0:
        raise ValueError("policies must not be empty.")
    names = []
    for name in policies or ():
        if not isinstance(name, str) or isinstance(policies, Mapping):
            raise ValueError(f"policies of a study are names from the catalogue, got {name!r}.")
        names.append(name)
    study = of if isinstance(of, Study) else load_study(of)
    with progress_bar() as progress:
        found = report_of_study(
            study,
            policies=names or None,
            epsilons=values,
            horizon=horizon,
            total_epsilons=totals,
            delta=delta,
            progress=progress,
        )
    if isinstance(of, Study):
        return found
    arguments = arguments_of_python(
        str(of), policies=names, epsilons=values, horizon=horizon, total_epsilons=totals, delta=delta
    )
    return replace(found, arguments=arguments)


def smallest_epsilon(
    problem: DecisionProblem | Process,
    policy: str | Policy,
    *,
    max_loss: float | None = None,
    keep: float | None = None,
    max_extra_lead: float | None = None,
    at_most: Mapping[str, float | str] | None = None,
    **others: Never,
) -> float:
    """Find the least epsilon at which a policy is good enough, to 1e-4 relative and never below what is needed.

    Parameters
    ----------
    problem : DecisionProblem or Process
        One decision, or decisions day by day.
    policy : str or Policy
        A name from the catalogue, or a policy whose epsilon is replaced.
    max_loss : float, optional
        The largest normalised loss allowed: (V(greedy) - V) / (V(greedy) - V(uniform)) <= max_loss.
    keep : float, optional
        The least benefit kept: (V - V(best-fixed)) / (V(greedy) - V(best-fixed)) >= keep.
    max_extra_lead : float, optional
        The most of the leading outcome (`DecisionProblem.lead`), such as deaths, per patient beyond the best treatment
        for everyone by utility (for a process: on all days).
    at_most : mapping of str to float or "one for all", optional
        For a DecisionProblem: the most of an outcome per patient, on average; "one for all" is as much as under the
        best single action for everyone. At least one of the four is required, and all that are given must be met.

    Returns
    -------
    float
        Of a process that of one decision, the same on every day, under the policy's own continuation. 0 if every
        epsilon will do.

    Raises
    ------
    UnreachableError
        A ValueError: no epsilon up to 1e9 will do.
    ValueError
        For a demand that is not a finite number, keep > 1, max_loss < 0, or none given.
    TypeError
        For a demand of another name, such as that of an earlier version, with the nearest one that there is.
    ClaimError, NoTableError
        For a policy that reveals more than it claims at the epsilon that was found, or gives no table of probabilities.

    Notes
    -----
    The value of one decision does not fall as epsilon rises. Deaths may rise: a policy that is worth more can cost more
    lives. With `max_extra_lead` or `at_most` the demand is met at the epsilon found, and not just below it; that it
    is met nowhere below is known for a grid of epsilons in ratios of 1.15 only. "optimal" is searched as the optimum
    within these bounds, for which it is known of every epsilon; "optimal-safe" within these and its own. Over days the
    value may fall, too: there the demand may be met somewhere else below.

    Examples
    --------
    >>> from policies import AnyRecord, DecisionProblem
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> round(smallest_epsilon(problem, "randomized-response", keep=0.8), 3)  # log 9
    2.197
    """
    from envs.toml_reader import unknown  # noqa: PLC0415
    from policies.catalogue import make_policy  # noqa: PLC0415
    from policies.problem import DecisionProblem  # noqa: PLC0415
    from policysim.decision.demands import (  # noqa: PLC0415
        Curve,
        least_epsilon,
        make_demand,
    )

    demands = {"max_loss": max_loss, "keep": keep, "max_extra_lead": max_extra_lead}
    for name in others:
        raise TypeError(unknown("demand", name, (*demands, "at_most")))
    if isinstance(problem, DecisionProblem):
        template = make_policy(policy) if isinstance(policy, str) else policy
        return least_epsilon(problem, make_demand(problem, at_most=at_most, **demands), template)
    if at_most:
        raise ValueError("at_most bounds the outcomes of one decision: a process has no named outcomes.")
    from policysim.course.course_comparison import margin  # noqa: PLC0415

    return Curve(*margin(problem, policy, **demands)).first_reaching(0.0)


refuse_others(__file__)
register()
