"""How often an observer's best guess of a patient's whole record, or of one feature, is right.

The observer knows the prior, the policy, and all that is public of the patient: the class of the records that are
hidden among each other (`policysim.decision.beliefs.Observer`). The best guess is the likeliest record of the class.
How often it is right is its Bayes vulnerability: before a treatment V = max_x p(x), and after it, on average over
treatments, V' = sum_a max_x p(x) p(a|x) (Smith 2009, On the foundations of quantitative information flow, FoSSaCS).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from policies.arrays import FloatArray, IntArray
from policies.fitted import FittedPolicy, require_fitted
from policies.optimal.classes import hiding_partitions
from policies.policy import Policy
from policies.problem import DecisionProblem
from policysim.decision.beliefs import Observer
from policysim.study.sweep import evaluated_on, rows_on

# What a row of the whole record is called.
WHOLE = "whole record"
# What rounding may take from a sum of probabilities: bounds are made larger by it.
ROUNDING = 1e-12


def record_risk(fitted: FittedPolicy) -> pd.DataFrame:
    """How often an observer's best guess of the patient's record, and of each hidden feature, is right.

    Parameters
    ----------
    fitted : FittedPolicy
        A policy on a problem (`Policy.fit`).

    Returns
    -------
    DataFrame
        A row for the whole record, and for each feature that is not public.

        - `what`: "whole record", or the name of the feature
        - `before`: how often the best guess is right, under the prior, for an observer who sees no treatment
        - `after`: how often, on average, for an observer who sees the treatment
        - `bound`: what `after` cannot exceed for any policy with this exact privacy loss; NaN under one-feature, where
          epsilon sets no such bound

    Raises
    ------
    ValueError
        For something else than a fitted policy, or a problem with a single record.

    Notes
    -----
    Of a class with k actions let n records be possible, m = min(n, k), and e the loss. Then the best guess is right
    after a treatment at most m e^e / (e^e + m - 1) times as often as before it:

    V' <= V sum_a M_a with M_a = max_x p(a|x). The actions of which one record attains the maximum are taken together:
    that leaves at most m groups, the same sum, and p(b|x) >= e^-e M_b for every record x and group b. The record that
    attains M_b has 1 = sum_c p(c|x) >= M_b + e^-e (sum_c M_c - M_b). The sum of this over at most m groups is
    m >= (1 + (m - 1) e^-e) sum_c M_c. k-ary randomised response on m equally likely records attains the bound.

    The same holds for a feature with n possible levels, or for any other fact about the record: what is given to those
    with a level is a mean of the rows of records of the class, so any two levels differ by a factor of e^e at most.
    Under one-feature, records that differ in several features may differ by more, and the bound does not hold.

    References
    ----------
    Braun, Chatzikokolakis & Palamidessi (2009), Quantitative notions of leakage for one-try attacks, MFPS: sum_a M_a.
    Alvim, Andres, Chatzikokolakis, Degano & Palamidessi (2015), On the information leakage of differentially-private
    mechanisms, Journal of Computer Security 23:427: leakage of a whole record within epsilon.

    Examples
    --------
    >>> from envs import record_space
    >>> from policies import AnyRecord, make_policy
    >>> space = record_space({"age": ["young", "old"], "ill": ["no", "yes"]})
    >>> utilities = [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]
    >>> problem = DecisionProblem(utilities, [0.4, 0.3, 0.2, 0.1], AnyRecord(), records=space)
    >>> record_risk(make_policy("randomized-response", epsilon=1.0).fit(problem)).round(3)
               what  before  after  bound
    0  whole record     0.4  0.512  0.585
    1           age     0.7  0.700  1.000
    2           ill     0.6  0.731  0.877
    """
    problem = require_fitted(fitted, "record_risk").problem
    given = [problem.prior * column for column in fitted.probabilities.T]
    return _risks(problem, given, fitted.epsilon_spent)


def risk_of_policies(problem: DecisionProblem, policies: Sequence[Policy], epsilon: float) -> pd.DataFrame:
    """`record_risk` of several policies, with a column `policy`; the bound is that of all policies within epsilon."""
    tables = []
    for policy in policies:
        on = evaluated_on(policy, problem)
        row = rows_on(on, problem)
        given = [problem.prior * column[row] for column in policy.probabilities(on).T]
        tables.append(_risks(problem, given, epsilon).assign(policy=policy.name))
    return pd.concat(tables, ignore_index=True)[["policy", "what", "before", "after", "bound"]]


def _risks(problem: DecisionProblem, given: Sequence[FloatArray], epsilon: float) -> pd.DataFrame:
    """The rows of `record_risk`; `given` has prior(x) p(a|x), (n_records,), for each action."""
    observer = Observer(problem)
    order = np.argsort(observer.classes, kind="stable")
    starts = np.flatnonzero(np.diff(observer.classes[order], prepend=-1))

    def most(column: FloatArray) -> FloatArray:
        return np.maximum.reduceat(column[order], starts)[observer.possible]

    n_possible = np.bincount(observer.classes, problem.prior > 0)[observer.possible]
    n_actions = np.full(len(starts), problem.n_actions)
    if problem.admissible is not None:
        n_actions = problem.admissible[order[starts]].sum(axis=1)
    bounded = len(hiding_partitions(problem.adjacency, problem.n_records)) == 1

    def row(what: str, before: FloatArray, after: FloatArray, n_values: IntArray) -> tuple[str, float, float, float]:
        groups = np.minimum(n_values, n_actions[observer.possible])
        times = (1 + ROUNDING) * groups / (1 + (groups - 1) * math.exp(-epsilon))
        bound = float(np.minimum(before * times, observer.shares).sum()) if bounded else math.nan
        return what, min(float(before.sum()), 1.0), min(float(after.sum()), 1.0), min(bound, 1.0)

    rows = [row(WHOLE, most(problem.prior), np.array([most(column) for column in given]), n_possible)]
    for name in problem.records.names:
        if name not in observer.public:
            joint = observer.joint(given, name)[1]
            patients = joint.sum(axis=2)
            rows.append(row(name, patients.max(axis=1), joint.max(axis=1), (patients > 0).sum(axis=1)))
    return pd.DataFrame(rows, columns=["what", "before", "after", "bound"])
