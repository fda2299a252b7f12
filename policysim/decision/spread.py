"""In how many versions of the model one option is better than another, and how much of that rests on a default."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from policysim.decision.exchange import exchange
from policysim.decision.redraws import Redrawn
from policysim.study.declared import CohortStudy, ModelledStudy
from policysim.study.labels import counted_illustrative

# How many times the default spread the versions are made with, beside once.
WIDER = (2.0, 3.0)


@dataclass(frozen=True, eq=False)
class Spread:
    """In how many versions of the model an option is better than another.

    Attributes
    ----------
    counts : DataFrame
        times (the default spread), better, equal and versions: a row for once, and where numbers move by the default
        spread, one for each wider one. Each version counts with its own weights.
    default, stated, together : int
        How many numbers of the model the versions vary: by the default spread, from intervals that are stated, and
        together, in versions that stand beside the model.
    numbers : int
        How many numbers the model has.
    """

    counts: pd.DataFrame
    default: int
    stated: int
    together: int
    numbers: int


def spread(study: ModelledStudy, versions: Redrawn, option: str, than: str) -> Spread:
    """Count the versions in which `option` is better than `than`, with the default spread once and more times.

    Parameters
    ----------
    study : ModelledStudy
        From which the versions were made.
    versions : Redrawn
        Of `redrawn(..., times=WIDER)`.
    option, than : str
        Two of their options.
    """
    drawn = {name: versions.drawn.get(name, 0) for name in ("default", "stated", "together")}
    tables = {1.0: versions.options}
    wider = versions.wider
    tables |= {float(times): wider[wider["times"] == times] for times in wider["times"].unique()}
    rows = []
    for times, table in tables.items():
        # Without an outcome that leads: each version has utilities with its own weights.
        found = exchange(table, option, than, lead=None, weight=0.0)
        rows.append((times, found.better, found.equal, found.versions))
    numbers = study.cohort.n_numbers if isinstance(study, CohortStudy) else counted_illustrative(study)[1]
    return Spread(pd.DataFrame(rows, columns=["times", "better", "equal", "versions"]), **drawn, numbers=numbers)
