"""read_log: from files and data frames to a data frame that evaluate_log takes."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from policysim.files.bad_rows import DataError
from policysim.logs.read_log import read_log
from policysim.trials.evaluate_log import evaluate_log

MORE = ["pid", "age", "sex"]


@pytest.fixture
def log_table(small_trial):
    return small_trial.rename(columns={"arm": "action", "success": "reward"}).assign(propensity=0.5)


def test_a_table_with_the_usual_names_needs_no_options(log_table):
    log = read_log(log_table)
    assert log.columns.tolist() == ["action", "reward", "propensity", "pid", "age", "sex"]
    assert log.action.tolist() == ["0", "1", "0", "1", "1", "0"]
    assert log.reward.dtype == log.propensity.dtype == float
    assert log.reward.tolist() == log_table.reward.tolist()
    pd.testing.assert_frame_equal(log[["pid", "age", "sex"]], log_table[["pid", "age", "sex"]])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("as_path", [str, lambda path: path])
def test_files_and_frames_are_the_same(tmp_path, log_table, ending, as_path):
    path = tmp_path / f"log.{ending}"
    table = log_table.assign(ward=["a", "b", None, "007", "b", ""], weight=[1.5, None, 2, 3, 4, 5], flag=[True] * 6)
    table.to_csv(path, index=False) if ending == "csv" else table.to_parquet(path)
    log = read_log(as_path(path))
    pd.testing.assert_frame_equal(log.drop(columns="ward"), read_log(table).drop(columns="ward"))
    assert log.ward.isna().tolist() == [False, False, True, False, False, ending == "csv"]
    assert log.ward[3] == "007"


def test_the_log_is_what_evaluate_log_takes(log_table):
    log = read_log(log_table, treatments={"2": "never", "1": "new", "0": "old"}, id="pid")
    assert log.action.cat.categories.tolist() == ["never", "new", "old"]
    # Only "old": the mean over six rows of reward / 0.5 where it was taken (rewards 1, 1, 0).
    found = evaluate_log(log, [[0, 0, 1]] * 6, estimator="ips")
    assert found.value == pytest.approx(2 * 2 / 6)


def test_ids_become_the_index(log_table):
    assert read_log(log_table, id="pid").index.tolist() == [11, 12, 13, 14, 15, 16]
    assert read_log(log_table, id="pid").columns.tolist() == ["action", "reward", "propensity", "age", "sex"]


def test_three_tables_are_one(tmp_path, log_table):
    shuffled = log_table.iloc[[5, 3, 1, 0, 2, 4]]
    shuffled[["pid", "reward"]].assign(later=1).to_csv(tmp_path / "o.csv", index=False)
    hot = pd.DataFrame({"pid": log_table.pid, "new": log_table.action, "old": 1 - log_table.action, "propensity": 0.5})
    one, others = read_log(log_table, id="pid"), {"outcomes": tmp_path / "o.csv", "id": "pid"}
    for actions, names in ((log_table[["pid", "action", "propensity"]], {}), (hot, {"0": "old", "1": "new"})):
        three = read_log(features=log_table[["pid", "age", "sex"]], actions=actions, **others)
        expected = one.assign(action=one.action.cat.rename_categories(names)) if names else one
        assert three.action.tolist() == expected.action.tolist()
        pd.testing.assert_frame_equal(three.drop(columns="action"), expected.drop(columns="action"))


def test_outcomes_are_weighted_and_no_covariates(small_trial):
    trial = small_trial.assign(death=[0, 1, 0, 0, 0, 0])
    weights = {"success": 1, "death": -2}
    log = read_log(trial, treatment="arm", outcome=weights, propensity="equal")
    assert log.reward.tolist() == [1, -2, 1, 1, 0, 0]
    assert log.columns.tolist() == ["action", "reward", "propensity", "pid", "age", "sex"]


def test_missing_outcomes(log_table):
    table = log_table.assign(reward=[1.0, None, 0.5, None, None, 0.0])
    with pytest.raises(DataError, match="table: row 1: reward: is missing"):
        read_log(table)
    excluded = read_log(table, missing="exclude")
    pd.testing.assert_series_equal(excluded.reward, table.reward)
    assert excluded.attrs["missing"] == {"0": 0, "1": 3}
    worst = read_log(table, missing="worst", range=(-4, 1))
    assert worst.reward.tolist() == [1, -4, 0.5, -4, -4, 0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"table": None}, "one table, or all three"),
        ({"missing": "worse"}, "missing must be one of refuse, exclude, worst, got missing='worse'"),
        ({"missing": "worst"}, "needs the lowest possible reward"),
        ({"range": (1, 1)}, r"range must be \(low, high\)"),
        ({"range": (1, 0, 2)}, r"^range must be \(low, high\), finite and low < high"),
        ({"range": (1,)}, r"^range must be \(low, high\), finite and low < high"),
        ({"range": ("0", "1")}, r"^range must be \(low, high\), finite and low < high"),
        ({"treatments": {"0": "a", "0.0": "b"}}, "treatments must have distinct values"),
        ({"outcome": {}}, "outcome must be columns and finite weights"),
        ({"outcome": "rewards"}, "table: unknown column 'rewards'; did you mean 'reward'"),
        ({"outcome": "action"}, "the column 'action' cannot be both the treatment and the outcome"),
        ({"table": 3}, "table must be a path, a pandas DataFrame or a NumPy array, got int"),
        ({"table": "nowhere.csv"}, "nowhere.csv: cannot be read"),
    ],
)
def test_arguments_that_do_not_fit_are_told_in_one_line(log_table, options, said):
    with pytest.raises(ValueError, match=said) as error:
        read_log(**{"table": log_table, **options})
    assert len(str(error.value).splitlines()) == 1


def test_the_logs_own_names_are_no_covariates_where_another_column_is_asked_for(log_table):
    assert read_log(log_table, propensity="equal").columns.tolist() == ["action", "reward", "propensity", *MORE]
    assert set(read_log(log_table.assign(propensity=0.1), propensity="equal").propensity) == {0.5}
    others = log_table.rename(columns={"action": "arm", "reward": "y"}).assign(action="?", reward=7)
    found = read_log(others, treatment="arm", outcome="y")
    assert found.columns.tolist() == ["action", "reward", "propensity", *MORE]
    assert found.reward.tolist() == log_table.reward.tolist()
    assert found.action.tolist() == read_log(log_table).action.tolist()


def test_of_three_tables_neither_propensities_nor_ids_are_treatments(log_table):
    hot = pd.DataFrame({"new": log_table.action, "old": 1 - log_table.action, "propensity": 0.25})
    parts = {"features": log_table[["pid", "age"]], "outcomes": log_table[["pid", "reward"]]}
    found = read_log(**parts, actions=hot.assign(pid=log_table.pid), id="pid", propensity="equal")
    assert found.action.cat.categories.tolist() == ["new", "old"] and set(found.propensity) == {0.5}
    with pytest.raises(DataError, match=r"actions: the column 'pid' is in features, too: name it as the id"):
        read_log(**parts, actions=hot.assign(pid=log_table.pid))
    with pytest.raises(DataError, match="features: the covariate reward has the name of a log's own column"):
        read_log(**(parts | {"features": log_table[["age", "reward"]]}), actions=hot)


@pytest.mark.parametrize("ids", [["7", "7.0", "8"], [7, "7.", "8"], [7, 7.0, "8"]])
def test_an_id_is_the_same_with_and_without_a_point(ids):
    table = pd.DataFrame({"id": pd.Series(ids, dtype=object), "action": [0, 1, 0], "reward": 1, "propensity": 0.5})
    with pytest.raises(DataError, match=r"row 1: id: '7' is there already: table: row 0"):
        read_log(table, id="id")
    assert len(read_log(table.assign(id=["007", "7.0", "7.5"]), id="id")) == 3


def test_without_propensities_the_three_choices_are_told(log_table):
    with pytest.raises(DataError, match=r"propensity='equal' .*, 'estimate', or the column"):
        read_log(log_table.drop(columns="propensity"))


def three_tables(pid_of_outcomes):
    patients = [f"{row:03}" for row in range(40)]
    return {
        "features": pd.DataFrame({"pid": patients, "age": range(40)}),
        "actions": pd.DataFrame({"pid": patients, "arm": [0, 1] * 20}),
        "outcomes": pd.DataFrame({"pid": pid_of_outcomes, "y": [0.0, 0.0, 1.0, 1.0] * 10}),
    }


def test_tables_that_share_ids_in_another_order_are_not_joined_by_row():
    tables = three_tables([f"{row:03}" for row in reversed(range(40))])
    asked = {"treatment": "arm", "outcome": "y", "propensity": "equal"}
    with pytest.raises(DataError, match=r'^outcomes: pid: differs by row from that of features.* id = "pid"$'):
        read_log(**tables, **asked)
    assert read_log(**tables, **asked, id="pid")["reward"].tolist() == [1.0, 1.0, 0.0, 0.0] * 10


def test_measurements_of_the_same_name_may_differ_by_row():
    tables = three_tables([f"{row:03}" for row in range(40)])
    tables["features"]["weight"], tables["outcomes"]["weight"] = range(60, 100), range(59, 99)
    log = read_log(**tables, treatment="arm", outcome="y", propensity="equal")
    assert log["weight"].tolist() == [*range(60, 100)]


def test_ids_without_the_zeros_of_the_others_are_one_line_without_ids():
    asked = {"treatment": "arm", "outcome": "y", "propensity": "equal", "id": "pid"}
    with pytest.raises(DataError, match=r"^outcomes: pid: lacks the zeros in front of 40 ids of features: [^\n]*$"):
        read_log(**three_tables(range(40)), **asked)


def test_covariates_backed_by_arrow_count_as_those_of_numpy():
    rng = np.random.default_rng(1)
    columns = {
        "arm": rng.choice(["x", "y"], 200),
        "cured": rng.integers(2, size=200),
        "severity": rng.choice(["mild", "severe"], 200),
        "smoker": rng.integers(2, size=200).astype(bool),
        "age": rng.integers(20, 80, 200),
    }
    plain = pd.DataFrame(columns).assign(site=pd.Categorical(rng.choice(["north", "south"], 200)))
    arrow = plain.convert_dtypes(dtype_backend="pyarrow")
    arrow["site"] = plain["site"].astype(str).astype(pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())))
    assert all(isinstance(dtype, pd.ArrowDtype) for dtype in arrow.dtypes)
    halves, given = np.full((200, 2), 0.5), {"treatment": "arm", "outcome": "cured", "propensity": "equal"}
    of_plain, of_arrow = (evaluate_log(read_log(frame, **given), halves) for frame in (plain, arrow))
    assert (of_plain.value, of_plain.interval) == (of_arrow.value, of_arrow.interval)
