"""Patients with a name, to see what a policy does to one; and how losses vary between patients: exact quantiles."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from envs.records import RecordSpace
from policies.arrays import FloatArray, IntArray, blocks
from policies.catalogue import make_policy
from policies.optimal.optimum import Optimal
from policies.policy import Policy
from policies.problem import DecisionProblem
from policysim.progress import SILENT, Progress
from policysim.study.sweep import applies, asked_for, at, evaluate_each, evaluated_on, prepare, rows_on
from policysim.words import in_a_row

AGE = "age"
# Years: the patient of the project's first example, and a young adult.
OLDER, YOUNGER = 60, 25
# So many of the flags that a patient has are named; the others are counted.
MOST_NAMED = 2
# Records whose probabilities differ by less, relative, are as common: the first stands for all.
AS_COMMON = 1e-9


@dataclass(frozen=True)
class ExamplePatient:
    """A patient that a page shows.

    Attributes
    ----------
    label : str
        Who it is, in a few words.
    record : int
        Index in the study's records.
    """

    label: str
    record: int


def example_patients(problem: DecisionProblem, illness: Sequence[str]) -> list[ExamplePatient]:
    """The patients that show what a policy does, each record once; of records without features, the most common one.

    Parameters
    ----------
    problem : DecisionProblem
        What is decided.
    illness : sequence of str
        The flags that make a patient ill (`Study.illness`).

    Returns
    -------
    list of ExamplePatient
        Of the records that the prior holds possible: the patient aged 60 with most of these flags and the one aged 25
        with fewest, the most common of such patients; and the most common record. Where no level of a feature "age" has
        60 or 25 years, the last and the first that occur stand for them.
    """
    space = problem.records
    named = [
        *(_by_features(problem, space, illness) if isinstance(space, RecordSpace) else []),
        ("the most common patient", int(problem.prior.argmax())),
    ]
    labels: dict[int, list[str]] = {}
    for label, record in named:
        labels.setdefault(record, []).append(label)
    return [ExamplePatient("; ".join(dict.fromkeys(found)), record) for record, found in labels.items()]


@dataclass(frozen=True)
class ExampleRows:
    """What policies give some patients, kept from tables that are computed for other reasons.

    Attributes
    ----------
    records : array of int, (n_examples,)
        Those of the patients.
    known : dict of Policy to array, (n_examples, n_actions)
        Their rows in each policy's table.
    """

    records: IntArray
    known: dict[Policy, FloatArray] = field(default_factory=dict, init=False)


def example_probabilities(
    problem: DecisionProblem,
    examples: Sequence[ExamplePatient],
    policies: Sequence[str | Policy],
    epsilons: Sequence[float],
    progress: Progress = SILENT,
    *,
    kept: ExampleRows | None = None,
) -> pd.DataFrame:
    """What each policy gives the example patients at each epsilon, exactly.

    Parameters
    ----------
    problem : DecisionProblem
        Their records are its rows.
    examples : sequence of ExamplePatient
        From `example_patients`.
    policies : sequence of str or Policy
        Names from the catalogue, or policies whose epsilon is replaced, that can be used on the problem.
    epsilons : sequence of float
        Values >= 0.
    progress : Progress, optional
        Reports each policy and epsilon.
    kept : ExampleRows, optional
        Of the same examples: what is there is not computed again.

    Returns
    -------
    DataFrame
        policy, epsilon, patient (the label), action, probability; a policy that ignores epsilon repeats at each.
    """
    rows = kept or ExampleRows(np.array([example.record for example in examples]))

    def rows_of(policy: Policy) -> FloatArray:
        if policy not in rows.known:
            on = evaluated_on(policy, problem)
            rows.known[policy] = policy.probabilities(on)[rows_on(on, problem)[rows.records]]
        return rows.known[policy]

    templates = [make_policy(policy) if isinstance(policy, str) else policy for policy in policies]
    for on in {evaluated_on(template, problem) for template in templates}:
        prepare(on)

    jobs = (at(template, epsilon) for template in templates for epsilon in epsilons)
    tables = evaluate_each(jobs, rows_of, progress)
    n_patients, n_actions = len(examples), problem.n_actions
    cells = n_patients * n_actions
    return pd.DataFrame(
        {
            "policy": np.repeat([template.name for template in templates], len(epsilons) * cells),
            "epsilon": np.tile(np.repeat(epsilons, cells), len(policies)),
            "patient": np.tile(
                np.repeat([example.label for example in examples], n_actions), len(policies) * len(epsilons)
            ),
            "action": np.tile(problem.actions, len(policies) * len(epsilons) * n_patients),
            "probability": np.concatenate(
                [tables[at(template, epsilon)].ravel() for template in templates for epsilon in epsilons]
            ),
        }
    )


def _by_features(problem: DecisionProblem, space: RecordSpace, illness: Sequence[str]) -> list[tuple[str, int]]:
    """The illest at 60 and the least ill at 25, by their own levels; none where there are no such flags and no ages."""
    if not illness and AGE not in space.names:
        return []
    prior = problem.prior.reshape(space.shape)
    n_flags = sum((space.along(name, [0, 1]) for name in illness), start=np.zeros((1,) * len(space.shape)))
    patients = []
    for years, sign in ((OLDER, 1), (YOUNGER, -1)):
        possible, parts = prior > 0, []
        if AGE in space.names:
            occur = np.bincount(space.groups(AGE)[0], problem.prior, len(space.feature(AGE).levels)) > 0
            place, age = _age_level(space, np.flatnonzero(occur).tolist(), years)
            possible, parts = possible & (space.along(AGE, np.arange(len(occur)) == place) > 0), [age]
        most = np.where(possible, sign * n_flags, -np.inf)
        chances = np.where(most == most.max(), prior, 0.0).ravel()
        record = int((chances >= chances.max() * (1 - AS_COMMON)).argmax())
        levels = zip(space.features, space.codes([record])[0], strict=True)
        present = [feature.in_words("1") for feature, code in levels if feature.flag and code == 1]
        more = [f"{len(present) - MOST_NAMED} more"] if len(present) > MOST_NAMED else []
        if illness:
            parts.append(in_a_row([*present[:MOST_NAMED], *more], "and") if present else "nothing present")
        patients.append((", ".join(parts), record))
    return patients


def _age_level(space: RecordSpace, occur: Sequence[int], years: int) -> tuple[int, str]:
    """Of the levels that occur, the place of the one that holds an age, and words for it."""
    levels = space.feature(AGE).levels
    for place in occur:
        low, high = _bounds(str(levels[place]))
        if low <= years <= high:
            return place, f"aged {years}"
    place = occur[-1 if years == OLDER else 0]
    return place, f"age {levels[place]}"


def _bounds(level: str) -> tuple[float, float]:
    """The whole years that a level means ("60-79", "80+", "< 28", "28 to < 34", "≥ 41", "60"); none for other words."""
    numbers = [float(number) for number in re.findall(r"\d+(?:\.\d+)?", level)]
    if len(numbers) == 2:
        # Below the upper end, if that is said.
        return numbers[0], numbers[1] - (0.5 if "<" in level else 0)
    if len(numbers) != 1 or not re.fullmatch(r"(?:[<>≥≤]|>=|<=)?\s*[\d.]+\s*\+?", level.strip()):
        return math.inf, -math.inf
    (number,) = numbers
    if level.strip().startswith("<") and "=" not in level:
        return -math.inf, number - 0.5
    if level.strip().startswith(("≤", "<=")):
        return -math.inf, number
    if level.strip().startswith(">") and "=" not in level:
        return number + 0.5, math.inf
    return number, math.inf if level.strip().startswith(("≥", ">=")) or level.strip().endswith("+") else number


N_QUANTILES = 50


def loss_quantiles(problem: DecisionProblem, policies: Sequence[str | Policy], epsilon: float) -> pd.DataFrame:
    """Quantiles of the patients' losses L(x) = sum_a p(a|x) (max_b u(x, b) - u(x, a)) under the prior, exactly.

    They say how the loss varies between patients: there is no sampling error in them.

    Parameters
    ----------
    problem : DecisionProblem
        Utilities and prior.
    policies : sequence of str or Policy
        As for `compare`. The optimum is left out where it can only be bounded: no table of it is known there.
    epsilon : float
        >= 0.

    Returns
    -------
    DataFrame
        policy, quantile (1 %, 3 %, ..., 99 %) and loss, in units of utility: the least l with P(L <= l) >= quantile.

    Raises
    ------
    ValueError
        For an unknown policy, one that cannot be used on the problem, or an epsilon that is not a number >= 0.

    Examples
    --------
    >>> from policies import AnyRecord
    >>> problem = DecisionProblem([[0.0, 1.0], [3.0, 0.0]], [0.9, 0.1], AnyRecord())
    >>> table = loss_quantiles(problem, ["uniform"], 1.0)
    >>> table["loss"].value_counts().to_dict()
    {0.5: 45, 1.5: 5}
    """
    templates, (value,) = asked_for(policies, [epsilon], ())
    known = [policy for policy in templates if not isinstance(policy, Optimal) or applies(policy, problem)]
    levels = (np.arange(N_QUANTILES) + 0.5) / N_QUANTILES
    frames = []
    for policy in (at(policy, value) for policy in known):
        on = evaluated_on(policy, problem)
        losses = losses_of(on, policy.probabilities(on))
        order = losses.argsort()
        below = on.prior[order].cumsum()
        # Both ends are known exactly; what is left is the rounding of a sum.
        places = np.searchsorted(below, levels * below[-1] * (1 - 1e-12))
        frames.append(pd.DataFrame({"policy": policy.name, "quantile": levels, "loss": losses[order[places]]}))
    return pd.concat(frames, ignore_index=True)


def losses_of(problem: DecisionProblem, probabilities: FloatArray) -> FloatArray:
    """L(x) of each record, (n_records,)."""
    losses = np.empty(problem.n_records)
    for rows in blocks(problem.n_records):
        utilities = problem.utilities[rows]
        # Regrets are never negative, and exactly 0 for the best action: who loses nothing is seen to.
        regrets = utilities.max(axis=1, keepdims=True) - utilities
        losses[rows] = (probabilities[rows] * regrets).sum(axis=1)
    return losses
