"""What evaluate_log refuses, and how it names rows; and what it reads."""

import numpy as np
import pandas as pd
import pytest

from policysim.files.bad_rows import DataError
from policysim.logs.log_frame import covariate_frame, read_log_frame
from policysim.trials.evaluate_log import evaluate_log


def long_log(n=30, **changed):
    actions = ["a", "b"] * (n // 2)
    columns = {"action": actions, "reward": np.arange(n) % 3, "propensity": np.full(n, 0.5), "age": np.arange(n)}
    return pd.DataFrame(columns | changed)


def policy(n=30):
    return np.full((n, 2), 0.5)


def wrong(n, rows, value, right):
    column = np.full(n, right, dtype=object)
    column[rows] = value
    return column


CHANCE = "propensity: must be a probability > 0 and <= 1"
LATE = {"action": wrong(30, [2], "c", "a"), "propensity": wrong(30, [1], 2, 0.5)}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"propensity": wrong(30, [3, 9], 0.0, 0.5)}, [f"row 3: {CHANCE}, got 0.0", f"row 9: {CHANCE}, got 0.0"]),
        ({"action": wrong(30, [2], None, "a")}, ["row 2: action: must be one of a, b, is missing"]),
        ({"reward": wrong(30, [29], np.inf, 1)}, ["row 29: reward: must be a finite number within ±1e+50, got inf"]),
        ({"age": wrong(30, [5], None, "x")}, ["row 5: age: is missing: a covariate must have a value in each row"]),
        (LATE, [f"row 1: {CHANCE}, got 2", "row 2: action: must be one of a, b, got 'c'"]),
        ({"propensity": 2.0}, [f"row 0: {CHANCE}, got 2.0 (so are 30 rows)"]),
    ],
)
def test_bad_rows_are_named_and_a_column_that_is_wrong_throughout_once(changed, said):
    with pytest.raises(DataError) as error:
        evaluate_log(long_log(**changed), policy(), actions=["a", "b"])
    assert str(error.value).splitlines() == [f"log: {line}" for line in said]


def test_twenty_rows_are_named_then_counted():
    with pytest.raises(DataError) as error:
        evaluate_log(long_log(1000, propensity=wrong(1000, range(800), 2.0, 0.5)), policy(1000))
    named = [f"log: row {row}: {CHANCE}, got 2.0" for row in range(20)]
    assert str(error.value).splitlines() == [*named, "... and 780 more"]


AX, AB = (pd.DataFrame(policy(), columns=list(names)) for names in ("ax", "ab"))
NEGATIVE = r"^probabilities: row 0: a: must be .* in \[0, 1\], got 1.5 \(so are 30 rows\)\nprobabilities: row 0: b: "
SAME = {"actions": [0, 1, 1.0, 3]}
NO_SHAPE = r"\(n_rows, k\) = \(30, 2\), k the actions a, b, got shape \(29, 2\)"
MODELS = "linear, logistic, gradient-boosting, constant, chosen, stacked"
NO_POLICY = [
    (policy()[1:], {}, NO_SHAPE),
    (policy() * 1.2, {}, "^probabilities: row 0: a, b: must sum to 1 within 1e-06, got a sum of 1.2\n"),
    (np.tile([1.5, -0.5], (30, 1)), {}, NEGATIVE),
    ([[0.5, 0.5], [1.0]], {}, "probabilities must be an array of numbers"),
    (AB.set_axis(["a", "a"], axis=1), {}, "columns of probabilities must be distinct actions, got 'a', 'a'"),
    (AX, {}, "^log: row 1: action: must be one of a, x, got 'b'\n"),
    (AX, {"actions": ["a", "b"]}, "must be the actions 'a', 'b', got 'a', 'x'"),
    (AB[::-1], {}, "its rows in the log's order: its index is the log's, reo"),
]
NO_OPTION = [
    ({"estimator": "magic"}, "estimator must be one of ips, snips, dm, dr, got estimator='magic'"),
    ({"outcome_model": "magic", "estimator": "dr"}, f"outcome_model must be one of {MODELS}, got"),
    ({"clip": 0}, "clip must be > 0 and finite, got clip=0"),
    ({"folds": 31, "estimator": "dr"}, r"folds must be from 2 to the number of rows \(30\), got folds=31"),
    ({"actions": "ab"}, "actions must be distinct actions, got actions='ab'"),
    (SAME, r"distinct actions, got actions=\[0, 1, 1.0, 3\]; 1, 1.0 and True are the same"),
    ({"seed": -1}, "seed must be a whole number >= 0, got seed=-1"),
    ({"covariates": ["weight"]}, r"covariates must be distinct columns among age, got covariates=\['weight'\]"),
]


@pytest.mark.parametrize(("table", "options", "said"), [*NO_POLICY, *((policy(), *option) for option in NO_OPTION)])
def test_what_is_no_policy_and_options_out_of_range_are_refused(table, options, said):
    with pytest.raises(ValueError, match=said):
        evaluate_log(long_log(), table, **{"estimator": "ips", **options})


@pytest.mark.parametrize(
    ("log", "said"),
    [
        (long_log().drop(columns=["reward", "propensity"]), "no column reward, propensity; it needs action, reward,"),
        (long_log()[:1], "the log must have at least 2 rows, got 1"),
        ([1, 2], "log must be a pandas DataFrame, got list"),
        (long_log(action=[1, "a"] * 15), "cannot be sorted"),
        (pd.concat([long_log(), long_log()[["age"]]], axis=1), "columns must be distinct"),
    ],
)
def test_what_is_no_log_is_refused(log, said):
    with pytest.raises(ValueError, match=said):
        evaluate_log(log, policy())


def test_actions_are_sorted_or_declared_or_the_categories():
    rows = ["medium", "low", "high", "low"]
    frame = long_log(4).assign(action=rows)
    assert read_log_frame(frame).names == ("high", "low", "medium")
    declared = ["low", "medium", "high"]
    categories = frame.assign(action=pd.Categorical(rows, declared))
    for data in (read_log_frame(frame, declared), read_log_frame(categories)):
        assert data.names == ("low", "medium", "high")
        assert data.actions.tolist() == [1, 0, 2, 0]
    assert read_log_frame(frame.assign(action=[10, 9, 10, 9])).actions.tolist() == [1, 0, 1, 0]


def test_numbers_may_come_in_any_column_type():
    plain = read_log_frame(long_log(4, reward=[1, 0, 1, 1]))
    for column in (
        [True, False, True, True],
        pd.array([1, 0, 1, 1], dtype="Int64"),
        pd.Categorical([1, 0, 1, 1]),
        np.array(["1", "0", "1", "1"], dtype=object),
    ):
        np.testing.assert_array_equal(read_log_frame(long_log(4, reward=column)).rewards, plain.rewards)


def test_the_columns_of_a_data_frame_are_the_actions_in_any_order():
    rng = np.random.default_rng(0)
    chance = rng.dirichlet(np.ones(3), 30)
    log = long_log()  # of a and b; c is never taken
    declared = evaluate_log(log, chance, estimator="ips", actions=["a", "b", "c"])
    frame = pd.DataFrame(chance, columns=["a", "b", "c"])
    for columns in (["a", "b", "c"], ["c", "a", "b"]):
        assert evaluate_log(log, frame[columns], estimator="ips") == declared
    assert evaluate_log(log, frame[["b", "c", "a"]], estimator="ips", actions=["a", "b", "c"]) == declared
    # Another index is no other order of rows.
    assert evaluate_log(log, frame.set_axis(range(5, 35)), estimator="ips") == declared
    # Numbers and their names as text, as in a file, are the same actions; of two, an array and a frame agree.
    numbered = log.assign(action=[0, 1] * 15)
    two = pd.DataFrame({"1": chance[:, 0], "0": 1 - chance[:, 0]})
    found = evaluate_log(numbered, two, estimator="snips")
    assert found == evaluate_log(numbered, two[["0", "1"]].to_numpy(), estimator="snips")


def test_sums_that_were_rounded_are_made_1_and_the_callers_array_is_left_alone():
    """As in `evaluate --table`: a sum may be off by 1e-6, which that of float32 is not."""
    exact = np.random.default_rng(0).dirichlet(np.ones(2), 30)
    rounded = exact.astype(np.float32)
    rounded[0] = (0.3, 0.7)  # 1.00000001
    found = evaluate_log(long_log(), rounded.astype(np.float32), estimator="ips")
    as_they_are = rounded.astype(np.float64)
    normalised = as_they_are / as_they_are.sum(axis=1, keepdims=True)
    assert found.value == pytest.approx(evaluate_log(long_log(), normalised, estimator="ips").value, rel=1e-9)
    off = exact * (1 + 9e-7)
    before = off.copy()
    assert evaluate_log(long_log(), off).value == pytest.approx(evaluate_log(long_log(), exact).value, rel=1e-12)
    assert (off == before).all()
    with pytest.raises(ValueError, match="row 0: a, b: must sum to 1 within 1e-06"):
        evaluate_log(long_log(), exact * (1 + 2e-6))


def test_what_is_known_after_treatment_is_no_covariate_unless_it_is_named():
    log = long_log().assign(patient=range(30), outcome_ill=[0, 1, 1] * 10)
    assert list(covariate_frame(log)) == ["age"]
    assert list(covariate_frame(log, ["outcome_ill", "patient"])) == ["outcome_ill", "patient"]
    assert evaluate_log(log, policy()) == evaluate_log(long_log(), policy())


def test_covariates_are_all_other_columns_or_those_named():
    log = long_log().assign(site="x")
    assert list(covariate_frame(log)) == ["age", "site"]
    assert list(covariate_frame(log, ["site"])) == ["site"]
    # What is not used need not be complete.
    broken = log.assign(site=None)
    assert evaluate_log(broken, policy(), covariates=["age"]).value == evaluate_log(log[[*log][:4]], policy()).value
    assert np.isfinite(evaluate_log(broken, policy(), estimator="ips").value)
