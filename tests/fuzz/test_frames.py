"""Hostile data frames: each function takes them, or says in a line what is wrong; cases that once ended otherwise."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from hostile_files import DOSES, LOG, PATIENTS, POLICY, changed_frame, hostile, is_read
from hypothesis import given
from hypothesis import strategies as st

import policysim as ps

HUGE = 10**400
COHORT = {"features": ["gene", "age"], "treatment": "dose", "patients": "patients", "sensitive": ["gene"]}
THIRDS = np.full((40, 3), 1 / 3)
# Functions of a data frame, and one that they take.
FUNCTIONS = {
    "problem": (partial(ps.problem_from_frame, weights={"wrong": 1, "deaths": 20}, lead="deaths", **COHORT), DOSES),
    "log": (partial(ps.read_log, treatment="arm", outcome="cured", propensity="equal"), PATIENTS),
    "ips": (partial(ps.evaluate_log, probabilities=THIRDS, estimator="ips"), LOG),
    "dr": (partial(ps.evaluate_log, probabilities=THIRDS, estimator="dr", outcome_model="constant"), LOG),
    "policy": (partial(ps.evaluate_log, LOG), pd.DataFrame(THIRDS, columns=["drip", "pill", "placebo"])),
    "utilities": (partial(ps.DecisionProblem, prior=[0.5, 0.5], adjacency=ps.AnyRecord()), POLICY.drop(columns="sex")),
    "probabilities": (partial(ps.privacy_loss, adjacency=ps.AnyRecord()), POLICY.drop(columns="sex")),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FUNCTIONS)
@hostile(10)
@given(data=st.data())
def test_hostile_frames_are_taken_or_refused(name, data):
    function, frame = FUNCTIONS[name]
    function(frame)
    is_read(partial(function, data.draw(changed_frame(frame))))


@pytest.fixture
def log():
    return pd.DataFrame({"action": ["a", "b"] * 3, "reward": [1.0, 0, 1, 0, 1, 1], "propensity": 0.5, "age": range(6)})


@pytest.fixture
def half():
    return np.full((6, 2), 0.5)


@pytest.fixture
def cohort():
    rows = [(gene, dose, 1, 0.5) for gene in "AB" for dose in ("low", "high")]
    return pd.DataFrame(rows, columns=["gene", "dose", "patients", "wrong"])


def with_cell(frame, column, row, value):
    """A frame in which one cell is any object."""
    values = [*frame[column]]
    values[row] = value
    cells = np.empty(len(values), dtype=object)
    for place, each in enumerate(values):
        cells[place] = each
    return frame.assign(**{column: pd.Series(cells, index=frame.index)})


@pytest.mark.parametrize("cell", [[1], {}, {"a": 1}, np.array([1, 2])])
def test_a_list_below_texts_is_told(cohort, log, half, cell):
    of_cohort = {"features": ["gene"], "treatment": "dose", "patients": "patients", "weights": {"wrong": 1}}
    with pytest.raises(ValueError, match="frame: gene: must hold one number, text, truth value or time"):
        ps.problem_from_frame(with_cell(cohort, "gene", 2, cell), **of_cohort)
    with pytest.raises(ValueError, match="log: action: must hold one number, text, truth value or time"):
        ps.evaluate_log(with_cell(log, "action", 3, cell), half)
    with pytest.raises(ValueError, match="covariate 'age' must hold one number, text, truth value or time"):
        ps.evaluate_log(with_cell(log, "age", 3, cell), half, covariates=["age"])


@pytest.mark.parametrize("column", ["reward", "propensity"])
def test_a_whole_number_that_no_float_holds_is_a_bad_row(log, half, column):
    with pytest.raises(ValueError, match=f"log: row 1: {column}: must be .*, got 1000"):
        ps.evaluate_log(with_cell(log, column, 1, HUGE), half, estimator="ips")


def test_a_whole_number_that_no_float_holds_is_no_probability_utility_or_count(cohort, log):
    with pytest.raises(ValueError, match="probabilities must be an array of numbers"):
        ps.evaluate_log(log, [[HUGE, 0]] * 6)
    with pytest.raises(ValueError, match="utilities must be numbers: int too large"):
        ps.DecisionProblem([[HUGE, 0], [0, 1]], [0.5, 0.5], ps.AnyRecord())
    of_cohort = {"features": ["gene"], "treatment": "dose", "patients": "patients", "weights": {"wrong": 1}}
    with pytest.raises(ValueError, match="frame: row 0: allowed: must be 0 or 1, got 1000"):
        ps.problem_from_frame(with_cell(cohort.assign(allowed=1), "allowed", 0, HUGE), **of_cohort)


@pytest.mark.parametrize("kind", ["float16", "halffloat[pyarrow]"])
def test_rewards_of_half_precision_are_numbers(log, half, kind):
    estimate = ps.evaluate_log(log.assign(reward=log["reward"].astype(kind)), half, estimator="ips")
    assert estimate.value == ps.evaluate_log(log, half, estimator="ips").value


@pytest.mark.parametrize("cell", ["a", b"a", {}, pd.Timedelta(1), object])
def test_utilities_and_probabilities_that_are_no_numbers_are_told(cell):
    with pytest.raises(ValueError, match="utilities must be numbers: "):
        ps.DecisionProblem(pd.DataFrame({"a": [cell, 1], "b": [0, 1]}), [0.5, 0.5], ps.AnyRecord())
    with pytest.raises(ValueError, match="must be numbers: "):
        ps.privacy_loss(pd.DataFrame({"a": [cell, 1], "b": [0, 0]}), ps.AnyRecord())


def test_two_columns_of_a_name_that_a_log_must_have_are_told(log, half):
    twice = pd.concat([log, log[["action"]]], axis=1)
    for probabilities in (half, pd.DataFrame(half, columns=["a", "b"])):
        with pytest.raises(ValueError, match="log must have a column for each name, got two columns action"):
            ps.evaluate_log(twice, probabilities)
    stacked = log.set_axis(pd.MultiIndex.from_arrays([log.columns, log.columns]), axis=1)
    with pytest.raises(ValueError, match="got names of columns in several rows"):
        ps.evaluate_log(stacked, half)


def test_names_of_columns_that_are_no_text_are_told(log, half):
    numbered = log.set_axis([*log.columns[:-1], float("nan")], axis=1)
    with pytest.raises(ValueError, match="log must have a column for each name, got a column without a name"):
        ps.evaluate_log(numbered, half)
    with pytest.raises(ValueError, match=r"row 0: action: must be one of \('a', 1\), \('b', 2\), got 'a'"):
        ps.evaluate_log(log, pd.DataFrame(half, columns=pd.MultiIndex.from_tuples([("a", 1), ("b", 2)])))
    with pytest.raises(ValueError, match="actions must be distinct actions"):
        ps.evaluate_log(log, pd.DataFrame(half, columns=pd.Index([float("nan"), "b"], dtype=object)))
