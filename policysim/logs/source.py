"""LogSource: what a study says about its log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from envs.records import RecordSpace
from policysim.logs.binning import Binning

# The names of the files: one table, or three.
TABLE = "table"
THREE_TABLES = FEATURES, ACTIONS, OUTCOMES = ("features", "actions", "outcomes")

EQUAL, ESTIMATE = "equal", "estimate"
REFUSE, EXCLUDE, WORST = MISSING_CHOICES = ("refuse", "exclude", "worst")
# As policysim.offpolicy.OUTCOME_MODELS, which takes a second to import; a test compares them.
_, LOGISTIC, _ = OUTCOME_MODELS = ("linear", "logistic", "gradient-boosting")

# What `policysim init` writes behind each guess.
CHECK = "# CHECK"

# Records of a declared domain: a table of utilities then has a few times as many entries.
MOST_RECORDS = 2_000_000


@dataclass(frozen=True)
class LogSource:
    """Where a log is and what its columns mean.

    Attributes
    ----------
    files : mapping of str to Path
        {"table": path}, or {"features": path, "actions": path, "outcomes": path}; CSV or Parquet.
    treatment : str
        The column that holds the treatment; "" for a table of actions with a column of 0 and 1 for each.
    treatments : tuple of (str, str)
        Each treatment's value (or column) and name, in the order of a policy's columns; empty: those that
        occur, sorted.
    propensity : str
        "equal" (1/k for k treatments), "estimate", or the column that holds the probability of the logged treatment.
    outcome : mapping of str to float
        Column and weight; the reward is the weighted sum.
    utility_range : tuple of float
        The lowest and the highest reward that are possible. Where it is the range of outcomes within [0, 1] (the
        default, see `default_range`), each outcome must be within [0, 1].
    missing : str
        What is done with rows without an outcome: "refuse", "exclude", or "worst" (the lowest reward of the range).
    id : str
        The column that holds the patients' ids, by which three tables are joined; "" for none.
    outcome_model : str
        One of `OUTCOME_MODELS`.
    features : mapping of str to Binning
        The declared domain, in the order of a record.
    outcome_checked : tuple of str
        Outcomes that somebody has looked at: they are taken whatever their names and values suggest.
    study : Path or None
        The study's file, for messages.
    unread : int
        Lines of it that are still marked as guesses (`# CHECK`).
    """

    files: Mapping[str, Path]
    treatment: str
    treatments: tuple[tuple[str, str], ...]
    propensity: str
    outcome: Mapping[str, float]
    utility_range: tuple[float, float]
    missing: str
    id: str
    outcome_model: str
    features: Mapping[str, Binning]
    outcome_checked: tuple[str, ...] = ()
    study: Path | None = None
    unread: int = 0

    @cached_property
    def space(self) -> RecordSpace:
        """The records: all combinations of declared levels and bins, whichever of them occur."""
        return RecordSpace(tuple(binning.feature for binning in self.features.values()))


def default_range(outcome: Mapping[str, float]) -> tuple[float, float]:
    """The range of the weighted sum of outcomes that are each within [0, 1].

    Examples
    --------
    >>> default_range({"success": 1.0, "death": -2.0})
    (-2.0, 1.0)
    """
    weights = outcome.values()
    return sum((w for w in weights if w < 0), 0.0), sum((w for w in weights if w > 0), 0.0)
