"""What people call a problem and its parts: names that a table of results needs before a person can read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from envs.records import RecordSpace
from policies.adjacency import Sensitive
from policies.problem import DecisionProblem, Records
from policysim.question.words import ASSUMED_PUBLIC, level_name
from policysim.study.basis import basis, hidden
from policysim.study.declared import ScenarioStudy, Study

# What is counted in the problem of a scenario and is no outcome of its own.
COUNTED = {"deaths": "deaths", "symptoms": "symptoms"}


@dataclass(frozen=True)
class Labels:
    """Names, titles and sources of one problem.

    Attributes
    ----------
    name : str
        Of its folder among the reports.
    title : str
        The question, in words.
    disclaimer : str
        What every reader must know first; empty where nobody has said anything.
    hidden, hidden_from, public : str
        What is hidden, from whom, and what is assumed to be public, in words.
    hidden_features : tuple of str
        The features of which an observer may learn.
    actions : mapping of str to str
        The title of each action; its name where it has none.
    outcomes : mapping of str to str
        The title of each outcome of the problem.
    illness : tuple of str
        The flags that make a patient ill.
    """

    name: str
    title: str
    actions: Mapping[str, str]
    outcomes: Mapping[str, str]
    disclaimer: str = ""
    hidden: str = "the whole record"
    hidden_from: str = "whoever sees the treatment"
    public: str = ASSUMED_PUBLIC
    hidden_features: tuple[str, ...] = ()
    illness: tuple[str, ...] = ()

    def for_all(self, actions: Sequence[str]) -> str:
        """What everybody gets; where contraindications differ, all that somebody gets."""
        titles = " or ".join(self.actions[name] for name in actions)
        return titles if len(actions) == 1 else f"{titles}, as allowed,"

    @classmethod
    def of(cls, problem: DecisionProblem, name: str = "problem", title: str = "A problem of one's own") -> Labels:
        """Those of a problem about which nothing else is known: the names that it has."""
        hidden = problem.records.names
        if isinstance(problem.adjacency, Sensitive):
            levels = tuple(len(problem.records.groups(feature)[1]) for feature in hidden)
            # Those of a table may be other features than the axes of its records.
            hidden = tuple(hidden[axis] for axis in problem.adjacency.axes) if levels == problem.adjacency.shape else ()
        return cls(
            name,
            title,
            actions={action: action for action in problem.actions},
            outcomes={outcome: outcome.replace("_", " ") for outcome in problem.outcomes},
            hidden_features=hidden,
        )


def labels_of(study: Study, problem: DecisionProblem) -> Labels:
    """Those of a study, whose problem was made from it."""
    said = basis(study)
    actions = {action: action for action in problem.actions}
    outcomes = {outcome: COUNTED.get(outcome, outcome.replace("_", " ")) for outcome in problem.outcomes}
    if isinstance(study, ScenarioStudy):
        scenario = study.scenario
        actions |= {name: treatment.title for name, treatment in scenario.treatments.items() if name in actions}
        counted = dict.fromkeys([*outcomes, *scenario.outcomes])
        outcomes |= {name: scenario.outcome_title(name) for name in counted if name not in COUNTED}
    return Labels(
        study.name,
        study.title,
        actions=actions,
        outcomes=outcomes,
        disclaimer=said.disclaimer,
        hidden=hidden(study),
        hidden_from=study.hidden_from,
        public=said.public,
        hidden_features=tuple(study.sensitive or study.space.names),
        illness=study.illness,
    )


def level_in_words(records: Records, feature: str, level: str) -> str:
    """What a patient is called who has a level of a feature."""
    return records.feature(feature).in_words(level) if isinstance(records, RecordSpace) else level_name(feature, level)
