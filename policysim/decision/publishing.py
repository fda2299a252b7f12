"""Giving and publishing are two decisions: what each way to publish treatments costs the patients, and its reader."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from numbers import Integral

import numpy as np
import pandas as pd

from policies.adjacency import AnyRecord, public_classes
from policies.arrays import FloatArray
from policies.catalogue import DEFAULT_POLICIES, make_policy
from policies.discrete_laplace import guess_rate_of_counts, standard_deviation
from policies.optimal.optimum import Optimal
from policies.policy import Policy, two_values
from policies.problem import DecisionProblem
from policies.randomized_response import RandomizedFeatures, RandomizedResponse
from policies.reference import BestFixed, Greedy
from policysim.decision.comparison import compare_problem
from policysim.numbers import NEGLIGIBLE
from policysim.study.gain import private_choices
from policysim.study.sweep import applies, at, checked_epsilons, evaluated_on, usable_policies
from policysim.words import (
    ALL,
    AS_IT_IS,
    NOISY_TABLE,
    NOISY_VALUES,
    NOTHING,
    PRIVATE_DRAW,
    PRIVATE_RECORD,
    SAME,
    TRUEST,
)

# Who must be trusted, under each way.
TRUSTED = {
    NOTHING: "who treats",
    NOISY_TABLE: "who treats and who counts",
    NOISY_VALUES: "who treats",
    TRUEST: "who treats",
    PRIVATE_DRAW: "who decides",
    PRIVATE_RECORD: "nobody",
    SAME: "nobody",
    AS_IT_IS: "every reader",
}
UNPUBLISHED, COUNTS, AS_GIVEN = "nothing", "counts", "as given"
# What depends on the publication, and not on what is given.
SEEN = ("guess_rate", "epsilon_spent", "true_share", "error_of_a_count")
# The columns before the outcome that leads, and after it.
COSTS = ("way", "given", "published", "epsilon", "guess_rate", "benefit_kept")
READERS = ("true_share", "error_of_a_count", "epsilon_spent", "common_share", "trusted")


def ways_to_publish(
    problem: DecisionProblem, epsilons: Sequence[float] | float = (1.0,), patients: int = 10_000
) -> pd.DataFrame:
    """Compare the ways to give treatments and to publish them: the loss of patients, and of the list's readers.

    A randomised list hides nothing from an observer who sees the treatment itself. Only a private draw, a private
    record and the same treatment for everyone do. If the observer sees only the list, give each patient the best
    treatment and replace entries of the list at random: the patients lose nothing.

    Parameters
    ----------
    problem : DecisionProblem
        What is decided; its adjacency says what must be hidden.
    epsilons : sequence of float, optional
        Values >= 0.
    patients : int, optional
        The number of published treatments, >= 1: only `error_of_a_count` depends on it.

    Returns
    -------
    DataFrame
        A row for each way and epsilon.

        - `way`: "nothing" is published; "noisy table": counts of treatments; "noisy values": each treatment through
          k-ary response; "noisy values, most true": through the channel with the largest share of true values;
          "private draw": of the highest utility; "private record": the record is randomised before anybody decides;
          "the same for everyone"; "as it is": the best for each, published
        - `given`: the policy by which treatments are given, as `compare` names it
        - `published`: "nothing", "counts", the policy that randomises the list, or "as given"
        - `epsilon`: as asked for
        - `guess_rate`: how often an observer of the publication tells two equally likely neighbours apart, at best, in
          [1/2, 1]; for counts, two logs that differ in one record
        - `benefit_kept`: as in `compare`: 0 is the same treatment for everyone, 1 the best for each
        - `expected_OUTCOME`: the leading outcome, per patient, as in `compare`; left out if there is none
        - `true_share`: the share of published treatments that are the given ones; NaN where none is published by itself
        - `error_of_a_count`: the standard deviation, in patients, of the count of a treatment that a reader estimates,
          of the treatment where it is largest; NaN where counts cannot be estimated: where a treatment is never
          published, where one is never given and the channel looks at more than the treatment, and where the copies
          say nothing; inf for counts at epsilon 0
        - `epsilon_spent`: the exact privacy loss of what is published
        - `common_share`: the true share that always publishing the commonest treatment (of a class of patients that
          agree in all that is public) would have, which says nothing
        - `trusted`: who must be

    Raises
    ------
    ValueError
        For something else than a problem, an epsilon that is not a number >= 0, or patients that are no whole number
        >= 1.

    Notes
    -----
    Let g be the best treatment of a record and R[g, y] = P(publish y | given g), under the prior given g. Of n_g
    patients given each, the published counts N have the mean R' n, so R'^-1 N estimates n without bias, with the
    covariance R'^-1 [sum_g n_g (diag R_g - R_g R_g')] R^-1, where n_g is `patients` times the share of g. For k-ary
    response (Warner 1965; Kairouz, Oh & Viswanath 2014) R does not depend on the prior; a channel that looks at more
    than the treatment (the truest, or k-ary response within contraindications) has this error for patients who are as
    the prior says. To randomise values before they are published is post-randomisation, PRAM (Gouweleeuw et al. 1998).

    The largest share of true values is the optimum for the utility [a = g(x)], or where that cannot be computed the
    best of the default policies: k-ary response where all treatments are given often (of two treatments, Holohan, Leith
    & Mason 2017, who minimise the error of a count). A treatment that is rarely given may be left out; R is then
    singular. Likewise, the private draw is the optimum for the problem's utility, or the best of the default policies
    that spend epsilon.

    A noisy table has discrete Laplace noise of scale 2 / epsilon, as replacing a record moves two counts by one: its
    error does not depend on `patients`, and its guess rate is that of one coin (`policies.discrete_laplace`).

    Giving each patient the best treatment and publishing nothing is jointly differentially private (Hsu, Huang, Roth,
    Roughgarden & Wu 2014, Private matchings and allocations). Machanavajjhala, Korolova & Das Sarma (2011) proved for
    recommendations that private draws are useful to few people.

    Examples
    --------
    >>> problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], AnyRecord())
    >>> ways = ways_to_publish(problem).set_index("way")
    >>> ways.loc[["noisy table", "noisy values"], ["benefit_kept", "error_of_a_count"]].round(2).values.tolist()
    [[1.0, 2.8], [1.0, 95.95]]
    """
    if not isinstance(problem, DecisionProblem):
        raise ValueError(f"ways_to_publish takes a DecisionProblem, got {problem!r}.")
    values = checked_epsilons(epsilons)
    if isinstance(patients, bool) or not isinstance(patients, Integral) or patients < 1:
        raise ValueError(f"patients must be a whole number >= 1, got patients={patients!r}.")
    return publishing_table(problem, values, int(patients))


def publishing_table(
    problem: DecisionProblem,
    values: Sequence[float],
    patients: int,
    known: pd.DataFrame | None = None,
    choices: Mapping[float, str] | None = None,
) -> pd.DataFrame:
    """The same, of parameters that were checked.

    `known` are rows of a comparison that need not be made again, and `choices` its private draws.
    """
    references = (Greedy.name, BestFixed.name, RandomizedFeatures.name)
    private = _private_policies(problem, values) if choices is None else list(choices.values())
    table = _compared(problem, values, (*references, *private), known)
    choices = private_choices(table, private) if choices is None else choices
    compared = table.set_index(["policy", "epsilon"]).to_dict("index")
    copies = _noisy_values(problem, values, patients)
    common = commonest_share(problem)
    expected = [] if problem.lead is None else [f"expected_{problem.lead}"]
    rows = []
    for way, epsilon in product(TRUSTED, values):
        given = {
            PRIVATE_DRAW: choices[epsilon],
            PRIVATE_RECORD: RandomizedFeatures.name,
            SAME: BestFixed.name,
        }.get(way, Greedy.name)
        costs = compared[given, epsilon]
        published, seen = AS_GIVEN, (costs["guess_rate"], costs["epsilon_spent"], 1.0, 0.0)
        if way == NOTHING:
            published, seen = UNPUBLISHED, (0.5, 0.0, math.nan, math.nan)
        elif way == NOISY_TABLE:
            # Where neighbours are given the same treatment, the counts do not tell them apart either.
            told = costs["epsilon_spent"] > 0
            guesses = (guess_rate_of_counts(epsilon), epsilon) if told else (0.5, 0.0)
            published, seen = COUNTS, (*guesses, math.nan, standard_deviation(epsilon / 2))
        elif (way, epsilon) in copies:
            published, seen = copies[way, epsilon]
        rows.append(
            {
                "way": way,
                "given": given,
                "published": published,
                "epsilon": epsilon,
                "benefit_kept": costs["benefit_kept"],
                **{name: costs[name] for name in expected},
                "common_share": common,
                "trusted": TRUSTED[way],
                **dict(zip(SEEN, map(float, seen), strict=True)),
            }
        )
    return pd.DataFrame(rows, columns=[*COSTS, *expected, *READERS])


def _private_policies(problem: DecisionProblem, epsilons: Sequence[float]) -> list[str]:
    """Of which the private choice is made: the optimum where it can be computed; else the default ones."""
    if applies(Optimal(epsilons[0]), problem):
        return [Optimal.name]
    defaults = [make_policy(name, epsilon=epsilons[0]) for name in DEFAULT_POLICIES]
    usable, _ = usable_policies(defaults, problem, named=False)
    return [name for name in usable if name != BestFixed.name]


def _compared(
    problem: DecisionProblem, epsilons: Sequence[float], policies: Iterable[str], known: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The rows of everyone in a comparison of some policies at least; those that are known are not made again."""
    there = [] if known is None else [known[known["group"].eq(ALL) & known["epsilon"].isin(epsilons)]]
    missing = [name for name in dict.fromkeys(policies) if not there or name not in set(there[0]["policy"])]
    if missing:
        there.append(compare_problem(problem, policies=missing, epsilons=epsilons))
    return pd.concat(there, ignore_index=True)


def _noisy_values(
    problem: DecisionProblem, epsilons: Sequence[float], patients: int
) -> dict[tuple[str, float], tuple[str, tuple[float, float, float, float]]]:
    """By way and epsilon, the policy that makes a copy of the given treatments, and `SEEN` of it.

    The same records, where what is worth something is that the given treatment is published.
    """
    k, best = problem.n_actions, problem.best_actions
    if isinstance(problem.adjacency, AnyRecord) and problem.admissible is None:
        # All are neighbours of each other: a record for each treatment that is best for some stands for these.
        kinds, kind = np.unique(best, return_inverse=True)
        truth = DecisionProblem(np.eye(k)[kinds], np.bincount(kind, problem.prior), AnyRecord(), problem.actions)
    else:
        truth = DecisionProblem(
            two_values(best, k, 1.0, 0.0),
            problem.prior,
            problem.adjacency,
            problem.actions,
            records=problem.records,
            admissible=problem.admissible,
        )
    private = _private_policies(truth, epsilons)
    table = _compared(truth, epsilons, (RandomizedResponse.name, *private))
    compared, truest = table.set_index(["policy", "epsilon"]).to_dict("index"), private_choices(table, private)
    given: FloatArray = patients * np.bincount(best, problem.prior, k).astype(np.float64)
    # Where all may get all, k-ary response looks at the given treatment alone, also at one that nobody is given.
    alone = DecisionProblem(np.eye(k), np.full(k, 1 / k), AnyRecord()) if problem.admissible is None else truth
    copies = {}
    for way, epsilon in product((NOISY_VALUES, TRUEST), epsilons):
        name, on = (RandomizedResponse.name, alone) if way == NOISY_VALUES else (truest[epsilon], truth)
        row = compared[name, epsilon]
        # A copy that is settled by what is public holds no information, whatever the prior makes of it.
        told = row["epsilon_spent"] > NEGLIGIBLE
        error = error_of_a_count(channel_matrix(at(make_policy(name), epsilon), on), given) if told else math.nan
        copies[way, epsilon] = name, (row["guess_rate"], row["epsilon_spent"], row["value"], error)
    return copies


def channel_matrix(policy: Policy, problem: DecisionProblem) -> FloatArray:
    """R[g, y], (n_actions, n_actions): the mean of p(y|x) over the records whose best action is g; NaN for none."""
    on = evaluated_on(policy, problem)
    share = np.bincount(on.best_actions, on.prior, on.n_actions)
    columns = [np.bincount(on.best_actions, on.prior * column, on.n_actions) for column in policy.probabilities(on).T]
    return np.stack(columns, axis=1) / np.where(share > 0, share, math.nan)[:, None]


def error_of_a_count(channel: FloatArray, given: FloatArray) -> float:
    """The largest standard deviation of an estimated count, of `given` patients with each treatment, (n_actions,).

    NaN where the channel, R[g, y], does not determine the counts.
    """
    if np.isnan(channel).any() or np.linalg.matrix_rank(channel) < len(channel):
        return math.nan
    inverse = np.linalg.inv(channel)
    spread = np.diag(given @ channel) - (channel.T * given) @ channel
    return float(np.sqrt(max(0.0, np.diag(inverse.T @ spread @ inverse).max())))


def commonest_share(problem: DecisionProblem) -> float:
    """The share of patients who are given the commonest best treatment among those who agree in all that is public."""
    classes = public_classes(problem.adjacency, problem.n_records)
    cells = classes * problem.n_actions + problem.best_actions
    shares = np.bincount(cells, problem.prior, (int(classes.max()) + 1) * problem.n_actions)
    return float(shares.reshape(-1, problem.n_actions).max(axis=1).sum())
