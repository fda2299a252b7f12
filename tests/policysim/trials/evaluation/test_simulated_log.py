"""What `policysim simulate --log` writes."""

import json

import numpy as np
import pandas as pd
import pytest
from small_studies import SCENARIO, write_small_study

import policysim as ps
from policies.records import encode
from policies.sampler import draw_actions
from policysim.cli.main import main
from policysim.course.simulated_log import open_simulated_log


def test_propensities_are_those_of_the_table_to_the_last_bit(study, problem, logged):
    log = pd.read_parquet(logged.path)
    table = logged.policy.probabilities(problem)
    space = ps.load_study(study).space
    actions = log["action"].map(problem.actions.index).to_numpy()
    assert np.array_equal(log["propensity"], table[encode(space, log), actions])


def test_rewards_are_the_realised_utility(study, logs):
    log = pd.read_parquet(logs["exponential"].path)
    utility = ps.load_study(study).utility
    expected = -log["action"].map(dict(utility.costs))
    for name, weight in utility.weights.items():
        expected -= weight * log[f"outcome_{name}"]
    assert np.allclose(log["reward"], expected, rtol=0, atol=1e-12)
    patients = logs["exponential"].patients
    assert log["patient"].tolist() == list(range(patients))


def test_what_is_printed_is_what_the_rows_say(study, tmp_path, run, monkeypatch):
    monkeypatch.setattr("policysim.course.simulation.BATCH", 700)
    path = tmp_path / "log.parquet"
    said = json.loads(run("simulate", study, "--patients", 5000, "--log", path, "--json")[1])
    log = pd.read_parquet(path)
    assert said["mean"] == pytest.approx(log["reward"].mean(), abs=1e-12)
    assert said["standard_error"] == pytest.approx(log["reward"].std(ddof=1) / np.sqrt(5000), rel=1e-9)
    assert said["treatments"] == {name: int((log["action"] == name).sum()) for name in ("none", "syrup", "pill")}
    outcomes = ("infected", "fever", "cough", "death")
    assert said["outcomes"] == {name: int(log[f"outcome_{name}"].sum()) for name in outcomes}
    # Without a log, the same seed gives the same patients.
    assert json.loads(run("simulate", study, "--patients", 5000, "--json")[1]) | {"log": said["log"]} == said


def test_patients_come_from_the_cohort_and_outcomes_from_their_treatment(study, problem, uniform_log):
    """Shares of records and deaths by action, within five standard errors of the model's."""
    space = ps.load_study(study).space
    records, patients = encode(space, uniform_log), len(uniform_log)
    counts = np.bincount(records, minlength=space.size)
    error = np.sqrt(patients * problem.prior * (1 - problem.prior))
    assert (np.abs(counts - patients * problem.prior) <= 5 * error).all()
    died = uniform_log["outcome_death"].to_numpy()
    for action, name in enumerate(problem.actions):
        rows = (uniform_log["action"] == name).to_numpy()
        chance = problem.outcomes["death"][records[rows], action]
        assert abs(died[rows].sum() - chance.sum()) <= 5 * np.sqrt((chance * (1 - chance)).sum())


def test_csv_and_parquet_hold_the_same_and_a_seed_makes_the_same_bytes(study, tmp_path, run, monkeypatch):
    monkeypatch.setattr("policysim.course.simulation.BATCH", 700)  # several batches, the last one cut
    for name in ("a.csv", "b.csv", "a.parquet", "b.parquet"):
        code, out, _ = run("simulate", study, "--patients", 1500, "--log", tmp_path / name)
        assert code == 0 and out.endswith(f"Log: {tmp_path / name}\n")
    other = tmp_path / "other.csv"
    assert run("simulate", study, "--patients", 1500, "--log", other, "--seed", 4)[0] == 0
    for ending in ("csv", "parquet"):
        assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    assert other.read_bytes() != (tmp_path / "a.csv").read_bytes()
    csv, parquet = pd.read_csv(tmp_path / "a.csv"), pd.read_parquet(tmp_path / "a.parquet")
    pd.testing.assert_frame_equal(csv, parquet, check_exact=True, check_dtype=False)
    assert csv["patient"].tolist() == list(range(1500))
    assert [*csv.columns] == [
        *("patient", "infected", "fever", "cough", "smoker", "age", "action", "reward", "propensity"),
        *("outcome_infected", "outcome_fever", "outcome_cough", "outcome_death"),
    ]
    assert set(csv["age"]) == {"young", "old"} and set(csv["action"]) == {"none", "syrup", "pill"}


def test_json_names_the_log(study, tmp_path, run):
    path = tmp_path / "deep" / "log.csv"
    code, out, _ = run("simulate", study, "--patients", 50, "--log", path, "--json")
    assert code == 0 and json.loads(out)["log"] == path.as_posix()
    assert len(path.read_text().splitlines()) == 51


def test_an_interrupted_run_leaves_the_old_file_whole_and_nothing_else(study, tmp_path, run, monkeypatch):
    path = tmp_path / "log.csv"
    path.write_text("old")
    beside = tmp_path / "log.csv.study.json"  # by which a simulation's log is known
    beside.write_text("{}")
    monkeypatch.setattr("policysim.course.simulation.BATCH", 100)
    batches = []

    def interrupted(table, rng):
        batches.append(len(table))
        if len(batches) == 2:
            raise KeyboardInterrupt
        return draw_actions(table, rng)

    monkeypatch.setattr("policysim.course.simulation.draw_actions", interrupted)
    assert run("simulate", study, "--patients", 300, "--log", path)[0] == 130
    assert path.read_text() == "old" and {*tmp_path.iterdir()} == {path, beside}


def test_a_log_that_no_simulation_wrote_is_not_replaced(study, tmp_path, run):
    path = tmp_path / "trial.csv"
    path.write_text("arm,outcome\n")
    code, out, err = run("simulate", study, "--patients", 50, "--log", path)
    assert (code, out) == (2, "")
    assert err == f"policysim: {path.as_posix()}: is there already, and no simulation wrote it: name another file\n"
    assert path.read_text() == "arm,outcome\n"
    path.unlink()
    for seed in (1, 2):
        assert run("simulate", study, "--patients", 50, "--log", path, "--seed", seed)[0] == 0


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty folder to work in, where nothing can be simulated."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("policysim.course.simulation.simulate", None)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("log.csv --horizon 2", "--log writes single decisions: over several days the propensities"),
        ("log.txt", "--log must end in .csv or .parquet, got 'log.txt'"),
        ("folder.csv", "folder.csv: is a folder"),
    ],
)
def test_a_log_that_cannot_be_written_is_refused_before_anything_is_simulated(study, run, empty, arguments, message):
    (empty / "folder.csv").mkdir()
    code, out, err = run("simulate", study, "--log", *arguments.split())
    assert (code, out) == (2, "")
    assert err.startswith(f"policysim: {message}") and err.count("\n") == 1


def test_a_feature_with_the_name_of_a_column_is_refused(tmp_path):
    scenario = SCENARIO.replace("smoker", "reward")
    study = ps.load_study(write_small_study(tmp_path, scenario=scenario))
    log = open_simulated_log(study.scenario, np.full((32, 3), 1 / 3), tmp_path / "log.csv")
    with pytest.raises(ValueError, match="feature 'reward' has the name of another column of a log"), log:
        pass


def test_levels_of_numbers_and_words_together_are_words(tmp_path):
    scenario = SCENARIO.replace('levels = ["young", "old"]', 'levels = [40, "old"]')
    study = write_small_study(tmp_path, scenario=scenario, study='scenario = "scenario.toml"\n')
    assert main(["simulate", str(study), "--patients", "200", "--log", str(tmp_path / "log.parquet")]) == 0
    assert set(pd.read_parquet(tmp_path / "log.parquet")["age"]) == {"40", "old"}
