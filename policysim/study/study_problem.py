"""From a study to the decision problem that policies work on: a table of utilities and a prior over all records.

Of a scenario or a cohort, utilities are expectations under its model. Of a log, they are scores fitted to its patients.
Other priors that the patients may come from are there, too: another prevalence, or one group alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from envs.cohort import Where, prior
from envs.records import RecordSpace
from envs.scenario import SYMPTOMS
from envs.treatment_response import ResponseModel, treatment_costs
from policies.adjacency import Adjacency
from policies.arrays import FloatArray, Frozen, IntArray, blocks
from policies.outcomes import Outcomes, RepeatedRows, outcome_table, whole_table
from policies.problem import DecisionProblem
from policysim.study.declared import (
    PREVALENCE,
    CohortStudy,
    LoggedStudy,
    ModelledStudy,
    ScenarioStudy,
    Study,
    build_adjacency,
    require_scenario,
)
from policysim.study.stated_bounds import symptoms_of
from policysim.utility import COSTS, Utility

if TYPE_CHECKING:
    from policysim.logs.load_log import Log

# The true prevalence as a multiple of the assumed one.
FACTORS = {"⅓": 1 / 3, "½": 1 / 2, "1": 1.0, "2": 2.0, "3": 3.0}


def build_problem(study: Study, *, where: Where | None = None) -> DecisionProblem:
    """The expected utility, prior and adjacency of a study, over all its records.

    Parameters
    ----------
    study : Study
        Of a scenario, a cohort or a log.
    where : mapping of str to level or list of levels, optional
        Of a scenario: only patients with these levels come, as `reset(options={"where": where})` of the environment
        draws them. The prior is conditioned on it; what is hidden among what stays the same.

    Returns
    -------
    DecisionProblem
        `.outcomes` holds what is expected per patient of all that is counted: of a scenario, of each of its outcomes,
        of symptoms together, and of costs. For a log, the utilities are an outcome model's, fitted on
        all of it, and the prior is that of its patients. `.priors` are `OtherPriors`. `.admissible` is what
        contraindications leave to each record.

    Raises
    ------
    ValueError
        For a condition on features or levels that do not exist, one that nobody meets, and one on a cohort or a log;
        for weights and costs of what a scenario does not have.

    Examples
    --------
    >>> from policysim.study.study_reader import load_study
    >>> build_problem(load_study("covid")).utilities.shape
    (1310720, 4)
    """
    if where is not None and not isinstance(study, ScenarioStudy):
        raise ValueError(f"where conditions the patients of a scenario, and this study has none, got where={where!r}.")
    if isinstance(study, LoggedStudy):
        # Only such a study needs these modules.
        from policysim.logs.counted_log import open_log  # noqa: PLC0415

        return problem_of_log(study, open_log(study.log))
    if isinstance(study, CohortStudy):
        others = OtherPriors(study, study.cohort.stated.shares[0])
        return study.cohort.problem(study.utility, build_adjacency(study), others, study.lead)
    modelled = require_scenario(study)
    scenario, assumed = modelled.scenario, prior(modelled.scenario, where)
    response = ResponseModel(scenario)
    return DecisionProblem(
        expected_utilities(response, modelled.utility),
        assumed,
        build_adjacency(study),
        scenario.actions,
        records=scenario.space,
        outcomes=_outcomes_of(modelled, response),
        priors=OtherPriors(study, assumed),
        admissible=response.admissible,
        lead=modelled.lead,
    )


def expected_utilities(response: ResponseModel, utility: Utility) -> FloatArray:
    """u(x, a) of a model, (n_records, n_actions); ValueError for weights and costs of what it does not have."""
    utility.require_names(response.scenario.outcomes, response.scenario.actions)
    return utility.expected(
        outcome_grids(response), treatment_costs(response.scenario, utility.costs), response.scenario.space.shape
    )


def outcome_grids(response: ResponseModel) -> dict[str, list[FloatArray]]:
    """What a model expects of each outcome under each action; the arrays broadcast over the grid of records."""
    actions = range(len(response.scenario.actions))
    return {name: [response.chance(name, action) for action in actions] for name in response.scenario.outcomes}


def _outcomes_of(study: ScenarioStudy, response: ResponseModel) -> Outcomes:
    """All that is counted of a patient: first what is counted of groups, too, then single symptoms, then costs."""
    grids, costs = outcome_grids(response), treatment_costs(response.scenario, study.utility.costs)
    shape, actions = study.space.shape, range(len(costs))
    parts = {SYMPTOMS: symptoms_of(study.scenario)}
    tables: dict[str, FloatArray | RepeatedRows] = {}
    for name in study.counted:
        counted = [grids.get(part, costs) for part in parts.get(name, (name,))]
        tables[name] = whole_table([reduce(np.add, [grid[action] for grid in counted]) for action in actions], shape)
    others = {name: grids[name] for name in grids if name not in tables}
    if COSTS not in tables:
        others.setdefault(COSTS, costs)
    return Outcomes(tables | {name: outcome_table(grid, shape) for name, grid in others.items()})


def problem_of_log(study: LoggedStudy, log: Log) -> DecisionProblem:
    """The decision problem whose scores are fitted to all rows of a study's log.

    Its values are those of the outcome model, on the rows that it was fitted to: too good. What policies are worth to
    other patients is in `policysim.trials.trial_columns`.
    """
    return fit_problem(log, np.ones(log.data.n_rows, dtype=np.bool_), study, build_adjacency(study))


def fit_problem(log: Log, rows: NDArray[np.bool_], study: LoggedStudy, adjacency: Adjacency) -> DecisionProblem:
    """Fit the scores and the prior to some rows of a log.

    Parameters
    ----------
    log : Log
        The whole log.
    rows : array of bool, (n_rows,)
        Those to fit to.
    study : LoggedStudy
        Its outcome model, the declared range of its utility, and its seed.
    adjacency : Adjacency
        Over the declared records.

    Returns
    -------
    DecisionProblem
        Over all declared records, whether they occur or not: u(x, a) is the outcome model's prediction, clipped to the
        declared range, so that no row of the log can move a score beyond it, less what the action costs. Where
        propensities are estimated, each arm's scores have the mean of its residuals added, weighted by inverse
        propensities; and where more is adjusted for than a record tells (`Log.confounders_are_finer`), rows are
        weighted so from the start, and patients of a record are those of all arms (Hernan & Robins 2020, What if,
        section 12.4). What actions cost is an outcome, too.
    """
    from policysim.logs.log_source import ESTIMATE  # noqa: PLC0415 - a scenario reads no tables
    from policysim.logs.outcome_models import fit_to_log, mean_residuals  # noqa: PLC0415

    source, data = study.log, log.data
    covariates, mine = indicators(log.space, log.records[rows]), data.of(rows)
    fitted_to = mine.standardised if log.confounders_are_finer and source.propensity == ESTIMATE else mine
    model = fit_to_log(source.outcome_model, covariates, fitted_to, seed=study.seed)
    assumed = smoothed_prior(log.space, log.records[rows], None if data.counts is None else data.counts[rows])
    scores = np.empty((log.space.size, data.n_actions), order="F")
    for block in blocks(log.space.size):
        scores[block] = model.predict(indicators(log.space, np.arange(block.start, block.stop)))
    if source.propensity == ESTIMATE:  # a model that is too simple still has the arms' levels right
        scores += mean_residuals(mine, model.predict(covariates))
    costs = {} if data.costs is None else {COSTS: RepeatedRows(data.costs[None], np.zeros(len(scores), np.uint8))}
    return DecisionProblem(
        data.less_costs(np.clip(scores, *source.utility_range)),
        assumed,
        adjacency,
        data.names,
        records=log.space,
        outcomes=Outcomes(costs),
        priors=OtherPriors(study, assumed),
    )


def indicators(space: RecordSpace, records: IntArray) -> FloatArray:
    """Records as covariates, (m,) -> (m, n_levels - n_features): 0 and 1 for each level but the first of a feature."""
    codes = space.codes(records)
    columns = [codes[:, axis, None] == np.arange(1, n_levels) for axis, n_levels in enumerate(space.shape)]
    return np.hstack(columns).astype(np.float64)


def smoothed_prior(space: RecordSpace, records: IntArray, each: IntArray | None = None) -> FloatArray:
    """The share of each declared record among the patients, with sqrt(n) imagined ones, (space.size,).

    (count + sqrt(n) product of marginal shares) / (n + sqrt(n)): records that few or none of the patients have get what
    independent features would give them. sqrt(n) pseudo-counts are the minimax choice for one cell (Steinhaus 1957, The
    problem of estimation; Fienberg & Holland 1973 for many). `each` says how many patients a record stands for.
    """
    from policysim.logs.log_frame import patients_by_code  # noqa: PLC0415 - a scenario reads no tables

    n = len(records) if each is None else int(each.sum())
    codes = space.codes(records)
    expected = np.ones(())
    for axis, n_levels in enumerate(space.shape):
        # One more patient in each level: none is impossible.
        counts = patients_by_code(codes[:, axis], each, n_levels) + 1.0
        expected = np.multiply.outer(expected, counts / counts.sum())
    mass = patients_by_code(records, each, space.size) + np.sqrt(n) * expected.ravel()
    prior: FloatArray = mass / mass.sum()
    return prior


def prevalent(study: ModelledStudy) -> FloatArray:
    """1 for the records with the condition that makes outcomes dangerous, (n_records,); 1 for all if there is none."""
    space = study.space
    ill = np.ones(space.size)
    if not isinstance(study, ScenarioStudy):
        return ill
    for name, levels in study.scenario.death.acute.items():
        codes, _ = space.groups(name)
        ill *= np.array([level in levels for level in space.feature(name).levels], dtype=np.float64)[codes]
    return ill


def at_prevalence(prior: FloatArray, ill: FloatArray, factor: float) -> tuple[FloatArray, float]:
    """The prior with the prevalence multiplied by a factor, at most 1, (n_records,), and that prevalence.

    Parameters
    ----------
    prior : array, (n_records,)
    ill : array, (n_records,)
        1 for the records with the condition; some, but not all, of the patients must have it.
    factor : float
    """
    assumed = float(prior @ ill)
    prevalence = min(factor * assumed, 1.0)
    other = prior * np.where(ill > 0, prevalence / assumed, (1 - prevalence) / (1 - assumed))
    return other / other.sum(), prevalence


@dataclass(frozen=True, eq=False, repr=False)
class OtherPriors(Frozen, Mapping[str, FloatArray]):
    """The priors by name: of each factor of the prevalence, or of each level of a feature that some patient has.

    They are made when they are asked for, each time anew: not every comparison asks, and each is as long as the domain.

    Parameters
    ----------
    study : Study
        `robust` says which; None for none.
    prior : array, (n_records,)
        The assumed one.
    """

    study: Study
    prior: FloatArray

    def __getitem__(self, name: str) -> FloatArray:
        """Make it; KeyError for an unknown name."""
        place = self._names[name]
        if isinstance(place, float):
            assert isinstance(self.study, ScenarioStudy)
            return at_prevalence(self.prior, prevalent(self.study), place)[0]
        codes, _ = self.study.space.groups(self.study.robust or "")
        within: FloatArray = np.where(codes == place, self.prior, 0.0)
        return np.asarray(within / within.sum())

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._names)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._names)

    @cached_property
    def _names(self) -> dict[str, float | int]:
        """Each with its factor or its level."""
        if self.study.robust is None:
            return {}
        if self.study.robust != PREVALENCE:
            codes, labels = self.study.space.groups(self.study.robust)
            shares = np.bincount(codes, self.prior, minlength=len(labels))
            return {f"{self.study.robust} {label}": level for level, label in enumerate(labels) if shares[level] > 0}
        if not isinstance(self.study, ScenarioStudy) or not 0 < float(self.prior @ prevalent(self.study)) < 1:
            return {}
        return {f"prevalence × {words}": factor for words, factor in FACTORS.items()}
