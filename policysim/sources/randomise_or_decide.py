"""What the published treatment must hide, and at which epsilon: the study of where to put the noise."""

from __future__ import annotations

from dataclasses import dataclass

from envs.toml_reader import Table, is_number
from policies.adjacency import AnyRecord, Sensitive
from policies.local import TwoCoin
from policies.problem import DecisionProblem
from policysim.sources.policy_study import read_names, read_study
from policysim.sources.reading import Claim, read_claims
from policysim.sources.two_coins import read_coins
from policysim.study import ScenarioStudy

COST = "two coins for each feature of a record: ε"


@dataclass(frozen=True)
class Hidden:
    """What the published treatment must hide: features, or the whole record if there are none."""

    name: str
    features: tuple[str, ...]

    def problem(self, whole: DecisionProblem, study: ScenarioStudy) -> DecisionProblem:
        """The problem with the neighbours that this asks for."""
        space = study.scenario.space
        axes = tuple(space.axis(name) for name in self.features)
        return whole.with_adjacency(Sensitive(space.shape, axes) if axes else AnyRecord())

    def size(self, study: ScenarioStudy) -> int:
        """How many features are hidden."""
        return len(self.features or study.scenario.space.names)


@dataclass(frozen=True)
class Constants:
    """What the study file holds.

    Attributes
    ----------
    study : ScenarioStudy
        Patients, treatments and utility.
    epsilon : float
        The one that the text is about, among `epsilons`.
    epsilons : tuple of float
        Those of the curves, rising, all > 0.
    coins : TwoCoin
        The source's response for one feature.
    hidden : tuple of Hidden
        The sets of features, in the order of the panels.
    claims : tuple of Claim
        What the source says.
    """

    study: ScenarioStudy
    epsilon: float
    epsilons: tuple[float, ...]
    coins: TwoCoin
    hidden: tuple[Hidden, ...]
    claims: tuple[Claim, ...]

    def two_coins(self, hidden: Hidden) -> float:
        """epsilon of two coins for each hidden feature: losses add up."""
        return self.coins.epsilon * hidden.size(self.study)


def read(table: Table) -> Constants:
    """The constants, mistakes noted in the table."""
    study = read_study(table)
    epsilons = table.list_of("epsilons", lambda value: is_number(value, 1e-3, 1e3), "numbers in [0.001, 1000]")
    epsilon = table.number("epsilon", low=1e-3, high=1e3)
    hidden = [_read_hidden(entry, study) for entry in table.tables("hidden")]
    if not hidden:
        table.fail("hidden is missing: it must be at least one table")
    return Constants(
        study=study,
        epsilon=epsilon,
        epsilons=tuple(sorted({float(value) for value in [*epsilons, epsilon]})),
        coins=read_coins(table.table("coins")),
        hidden=tuple(hidden),
        claims=read_claims(table, (COST,)),
    )


def _read_hidden(entry: Table, study: ScenarioStudy) -> Hidden:
    features = read_names(entry, "features", study.scenario.space.names, [])
    hidden = Hidden(entry.text("name"), features)
    entry.close()
    return hidden
