"""The events of a scenario beside death: how often each happens under each policy, in words for screen and page."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from policies.reference import Greedy
from policysim.decision.findings import Findings
from policysim.question.formats import events, population
from policysim.question.screen_lines import cells, wrap
from policysim.question.words import ALL
from policysim.study.declared import ScenarioStudy

BEST = "best for each"
COLUMN = 16


@dataclass(frozen=True)
class EventTable:
    """Events among so many patients: of the best treatment for each, and how many more under each policy.

    Attributes
    ----------
    count : int
        Patients.
    titles : tuple of str
        Of the events, a column each.
    rows : list of (str, list of str)
        Of the best for each, then of each policy.
    """

    count: int
    titles: tuple[str, ...]
    rows: list[tuple[str, list[str]]]


def event_table(study: ScenarioStudy, findings: Findings, table: pd.DataFrame) -> EventTable | None:
    """The events at the study's epsilon; None for a scenario without.

    Parameters
    ----------
    study : ScenarioStudy
        Its scenario has the events.
    findings : Findings
        Whose policies are shown.
    table : DataFrame
        From `compare`, with `expected_EVENT` and `extra_EVENT`, and the references.
    """
    names = list(study.scenario.events)
    if not names:
        return None
    at_epsilon = table[(table["epsilon"] == findings.epsilon) & (table["group"] == ALL)].set_index("policy")
    columns = [f"extra_{name}" for name in names]
    shown = [row.policy for row in findings.rows if row.policy in at_epsilon.index]
    extra = at_epsilon.loc[shown, columns].to_numpy(dtype=np.float64)
    best = at_epsilon.loc[[Greedy.name], [f"expected_{name}" for name in names]]
    least = best.to_numpy(dtype=np.float64)[0].tolist()
    count = population([*least, *extra.ravel()])
    return EventTable(
        count,
        tuple(study.scenario.outcome_title(name) for name in names),
        [
            (BEST, [events(rate, count) for rate in least]),
            *(
                (policy, [events(rate, count, sign=True) for rate in row])
                for policy, row in zip(shown, extra.tolist(), strict=True)
            ),
        ],
    )


def event_lines(found: EventTable | None) -> list[str]:
    """The table on the screen, and its columns in words above it."""
    if found is None:
        return []
    marks = [f"[{place}]" for place in range(1, len(found.titles) + 1)]
    widths = (25, *(COLUMN for _ in marks))
    legend = ", ".join(f"{mark} {title}" for mark, title in zip(marks, found.titles, strict=True))
    return [
        *wrap(f"Events per {found.count:,} patients, of policies beyond the best treatment for each: {legend}."),
        cells(["", *marks], widths),
        *(cells([name, *values], widths) for name, values in found.rows),
        "",
    ]
