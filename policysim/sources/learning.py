"""A classifier that learns from private columns: what the study file holds."""

from __future__ import annotations

from dataclasses import dataclass

from envs.scenario import Scenario
from envs.toml_reader import Table, is_number
from policysim.sources.policy_study import read_names, read_study
from policysim.sources.reading import Claim, read_claims, read_whole
from policysim.study import ScenarioStudy

PLAN = "training on private columns"
LEAST_PATIENTS = 1000


@dataclass(frozen=True)
class Private:
    """Columns that are handed over as one joint report."""

    name: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class Constants:
    """What the study file holds.

    Attributes
    ----------
    study : ScenarioStudy
        Its scenario is who comes.
    outcome : tuple of str
        What is to be foreseen: any of these after no treatment.
    patients, repeats : int
        Patients to learn from, and as many to be judged by; and how often all is done.
    epsilon : float
        The one that the text is about, among `epsilons`.
    epsilons : tuple of float
        Rising, all > 0.
    private : tuple of Private
        The sets of columns.
    claims : tuple of Claim
        What the source says.
    """

    study: ScenarioStudy
    outcome: tuple[str, ...]
    patients: int
    repeats: int
    epsilon: float
    epsilons: tuple[float, ...]
    private: tuple[Private, ...]
    claims: tuple[Claim, ...]

    @property
    def scenario(self) -> Scenario:
        """Who comes, and what becomes of them."""
        return self.study.scenario


def read(table: Table) -> Constants:
    """The constants, mistakes noted in the table."""
    study = read_study(table)
    epsilons = table.list_of("epsilons", lambda value: is_number(value, 0.01, 30), "numbers in [0.01, 30]")
    epsilon = table.number("epsilon", low=0.01, high=30)
    private = [_read_private(entry, study) for entry in table.tables("private")]
    if not private:
        table.fail("private is missing: it must be at least one table")
    return Constants(
        study=study,
        outcome=read_names(table, "outcome", study.scenario.outcomes),
        patients=read_whole(table, "patients", least=LEAST_PATIENTS),
        repeats=read_whole(table, "repeats", least=2),
        epsilon=epsilon,
        epsilons=tuple(sorted({float(value) for value in [*epsilons, epsilon]})),
        private=tuple(private),
        claims=read_claims(table, (PLAN,)),
    )


def _read_private(entry: Table, study: ScenarioStudy) -> Private:
    private = Private(entry.text("name"), read_names(entry, "columns", study.scenario.space.names))
    if len(private.columns) == len(study.scenario.space.names):
        entry.fail("must leave at least one column public", "columns")
    entry.close()
    return private
