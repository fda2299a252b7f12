"""The columns of a comparison over days: one line of `COLUMNS` each, and one function where it is computed here.

Each is computed of a `CourseEvaluation`: what one policy over all days gives the patients of each group.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np

from policies.arrays import ROUNDING, FloatArray
from policysim.course.course_evaluation import CourseResult
from policysim.course.course_limit import ProvenLimit
from policysim.study.gain import excess, ratio
from policysim.study.sweep import Columns, Group

# What a share of the gain may be too small by, and more.
SLACK = 1e-12
NO_LIMIT = ProvenLimit(math.nan, "", "")


@dataclass(frozen=True, eq=False)
class CourseReferences:
    """What policies are measured against over the days of one process.

    Where states differ in what they allow, and that never changes, `fixed` is the best for all who allow the same.

    Attributes
    ----------
    horizon : float
        The number of decisions; inf for a process that goes on until it ends.
    groups : sequence of Group
        Of the first states, everyone first.
    best, uniform : CourseResult
        Of these policies.
    fixed : CourseResult or None
        Of the best constant action, if any has a value.
    """

    horizon: float
    groups: Sequence[Group]
    best: CourseResult
    uniform: CourseResult
    fixed: CourseResult | None


@dataclass(frozen=True, eq=False)
class CourseEvaluation:
    """One policy over all days, at one epsilon of a decision or within one total, evaluated.

    Attributes
    ----------
    policy, epsilon : str, float
        As the table has them.
    result : CourseResult
        What it gives, and what it reveals.
    references : References
        Of the same process.
    continuation : {"private", "optimal"}
        What the Q-values expect of the days that follow.
    total : float or None
        What all days may spend together; None where nobody has set that.
    total_spent : float
        What they spend at most at the delta of the total.
    composition : str
        What proves it.
    limit : ProvenLimit
        What no mechanism within the total exceeds, for everyone; of nothing where that is not asked for.
    """

    policy: str
    epsilon: float
    result: CourseResult
    references: CourseReferences
    continuation: str = "optimal"
    total: float | None = None
    total_spent: float = math.nan
    composition: str = ""
    limit: ProvenLimit = NO_LIMIT

    @property
    def groups(self) -> Sequence[Group]:
        """Everyone first."""
        return self.references.groups

    @property
    def best(self) -> FloatArray:
        """What the best policy is worth to each group, (n_groups,)."""
        return self.references.best.value

    @property
    def fixed(self) -> FloatArray:
        """What the best constant action is worth to each group, (n_groups,); NaN where there is none."""
        fixed = self.references.fixed
        return np.full(len(self.groups), np.nan) if fixed is None else fixed.value


def loss(of: CourseEvaluation) -> FloatArray:
    """V(best) - V."""
    return excess(of.best, of.result.value, np.abs(of.best))


def normalized_loss(of: CourseEvaluation) -> FloatArray:
    """Loss / (V(best) - V(uniform)); NaN where that is rounding."""
    return ratio(loss(of), of.best - of.references.uniform.value, np.abs(of.best))


def benefit_kept(of: CourseEvaluation) -> FloatArray:
    """(V - V(fixed)) / (V(best) - V(fixed)); NaN where that is rounding."""
    scale = np.abs(of.best)
    return ratio(excess(of.result.value, of.fixed, scale), of.best - of.fixed, scale)


def extra(of: CourseEvaluation) -> dict[str, FloatArray]:
    """E(outcome) - E(outcome under the best constant action), of each; NaN where there is none."""
    fixed = of.references.fixed
    for_all = (
        {name: np.full(len(of.groups), np.nan) for name in of.result.outcomes} if fixed is None else fixed.outcomes
    )
    return {
        name: excess(mean, for_all[name], np.maximum(abs(mean), abs(for_all[name])))
        for name, mean in of.result.outcomes.items()
    }


def epsilon_spent(of: CourseEvaluation) -> float:
    """The largest exact privacy loss of one decision."""
    return max(of.result.spent)


def total_epsilon(of: CourseEvaluation) -> float:
    """The total as it was asked for; else the sum of the exact losses of all days, inf or 0 without a horizon."""
    return _all_days(of) if of.total is None else of.total


def _all_days(of: CourseEvaluation) -> float:
    total = sum(of.result.spent)
    return total if of.references.horizon < math.inf or total == 0 else math.inf


def hides(of: CourseEvaluation) -> str:
    """Whether any two courses of states, the state of each decision only, or nothing is hidden."""
    return "course" if _all_days(of) < math.inf else "one state" if epsilon_spent(of) < math.inf else "nothing"


def unbeatable(of: CourseEvaluation) -> FloatArray:
    """The value that no mechanism within the total exceeds, for everyone."""
    return np.where(np.arange(len(of.groups)) == 0, of.limit.value, np.nan)


def most_kept(of: CourseEvaluation) -> FloatArray:
    """The share of the benefit that this is, rounded up by more than what a difference and a quotient lose."""
    gain = np.where(of.best - of.fixed > ROUNDING * np.abs(of.best), of.best - of.fixed, np.nan)
    # Nothing keeps more than the best for each.
    most: FloatArray = np.minimum((unbeatable(of) - of.fixed) / gain + SLACK, 1.0)
    return most


# A name that ends in "_" is the beginning of several, of each outcome.
_ALWAYS: Columns[CourseEvaluation] = {
    "horizon": attrgetter("references.horizon"),
    "value": attrgetter("result.value"),
    "loss": loss,
    "normalized_loss": normalized_loss,
    "benefit_kept": benefit_kept,
    "expected_": attrgetter("result.outcomes"),
    "extra_": extra,
    "epsilon_spent": epsilon_spent,
    "total_epsilon": total_epsilon,
    "hides": hides,
}
_CONTINUATION: Columns[CourseEvaluation] = {"continuation": attrgetter("continuation")}
COLUMNS: Columns[CourseEvaluation] = _ALWAYS | _CONTINUATION
# Where all days share a total.
COLUMNS_OF_TOTALS: Columns[CourseEvaluation] = {
    **_ALWAYS,
    "total_spent": attrgetter("total_spent"),
    "composition": attrgetter("composition"),
    **_CONTINUATION,
}
# Where it is known besides what no mechanism exceeds within a total.
COLUMNS_OF_LIMITS: Columns[CourseEvaluation] = {
    **COLUMNS_OF_TOTALS,
    "unbeatable": unbeatable,
    "most_kept": most_kept,
    "most_kept_hides": attrgetter("limit.hides"),
    "most_kept_proof": attrgetter("limit.proof"),
}
