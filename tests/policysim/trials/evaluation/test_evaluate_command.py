"""`policysim evaluate` as a user meets it."""

import json

import numpy as np
import pandas as pd
import pytest

import policysim as ps
from policysim.files.probability_table import read_probability_table
from policysim.numbers import rounded, with_interval, written
from policysim.progress import Progress
from policysim.study.study_reader import load_study
from policysim.trials.estimate_value import ESTIMATORS, Estimator
from policysim.trials.evaluate_log import evaluate_on
from policysim.trials.outside_policy import table_policy
from policysim.trials.trial_words import CONCLUSIONS

STUDY = """\
title = "A trial"
[data]
file = "trial.csv"
treatment = "arm"
propensity = "{propensity}"
outcome = {{ success = 1.0, harm = -0.5 }}
missing = "{missing}"
id = "id"
[data.treatments]
0 = "none"
1 = "pill"
[data.features]
age = {{ cuts = [40, 60] }}
sex = {{ levels = ["f", "m"] }}
"""


@pytest.fixture
def trial(tmp_path):
    """A study of a trial of 300 patients, 9 of them without an outcome."""

    def write(missing="exclude", propensity="equal"):
        rows = [
            {
                "id": f"P{i:03d}",
                "arm": i % 2,
                "age": 30 + i % 47,
                "sex": "fm"[i // 2 % 2],
                "success": "" if i % 100 < 3 else int((i * 7919) % 10 < 4 + 3 * (i % 2)),
                "harm": int(i % 7 == 0),
            }
            for i in range(300)
        ]
        pd.DataFrame(rows).to_csv(tmp_path / "trial.csv", index=False)
        path = tmp_path / "study.toml"
        path.write_text(STUDY.format(missing=missing, propensity=propensity))
        return path

    return write


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "policy.csv"
    path.write_text("sex,p_pill,p_none\nf,0.8,0.2\nm,0.3,0.7\n")
    return path


def test_each_line_of_the_screen_holds_its_numbers(study, logs, run, evaluated):
    arguments = (logs["uniform"].path, "--policy", "randomized-response", "--epsilon", "1", "--study", study)
    code, out, err = run("evaluate", *arguments)
    assert (code, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 100
    flat = " ".join(out.split())
    document = evaluated(*arguments)
    estimate, difference = document["estimate"], document["best_single_arm"]
    value = with_interval(estimate["value"], *estimate["interval"])
    conclusion = CONCLUSIONS[difference["verdict"]].format("the policy")
    apart = with_interval(difference["value"], *difference["interval"], sign=True)
    largest = rounded(estimate["largest_weight"])
    shown = [
        f"patients of {logs['uniform'].path} 8,000 rows, all with an outcome; 8,000 are used.",
        "Policy randomized-response at ε = 1, on the records of small.",
        f"Value {value} per patient, doubly robust.",
        f"{document['exact']['errors_apart']:.2f} standard errors from the estimate: they agree.",
        f"Minus one arm {apart}: {conclusion}. The arm is the one that did best in other "
        f"patients; for most it is {difference['arm']}.",
        f"effective sample size {estimate['ess']:,.0f} of 8,000 rows, largest weight {largest}.",
        "linear, from infected, fever, cough, smoker, age. Not used: patient, outcome_infected",
        *(f"{arm['arm']} {arm['rows']:,}" for arm in document["arms"]),
        "Private: the treated patient's record",
        "Not private: the log",
    ]
    places = [flat.index(" ".join(words.split())) for words in shown]
    assert places == sorted(places)


def test_a_study_of_a_log_says_what_was_done_with_missing_outcomes(run, screen, trial, table):
    flat = screen("evaluate", trial(), "--table", table)
    assert "300 rows, 9 without an outcome (none 6, pill 3), made up for by a model, right if they are missing" in flat
    assert "300 are used" in flat and "confounding" not in flat
    flat = screen("evaluate", trial("worst"), "--table", table)
    assert "counted with the lowest reward of the declared range; 300 are used" in flat
    code, out, err = run("evaluate", trial("refuse"), "--table", table)
    assert (code, out) == (3, "") and "success: is missing" in err


def test_a_study_of_a_log_is_evaluated_by_its_own_rules(evaluated, trial, table, tmp_path):
    found = evaluated(trial(), "--table", table, "--estimator", "ips")
    every = pd.read_csv(tmp_path / "trial.csv")
    rows = every.dropna()
    reward = rows["success"] - 0.5 * rows["harm"]
    pill = rows["sex"].map({"f": 0.8, "m": 0.3})
    p = pill.where(rows["arm"] == 1, 1 - pill)
    # Rows without an outcome are made up for, here by few: nearly as if each arm's others were weighted for them.
    left = rows["arm"].map(rows["arm"].value_counts() / every["arm"].value_counts()) / (len(rows) / len(every))
    assert left.nunique() == 2
    assert found["estimate"]["value"] == pytest.approx((p / (0.5 * left) * reward).mean(), abs=0.01)
    means = [reward[rows["arm"] == arm].mean() for arm in (0, 1)]
    assert [arm["mean"] for arm in found["arms"]] == pytest.approx(means, abs=0.01)
    assert found["missing"] == {"none": 6, "pill": 3} and found["rows_read"] == 300
    assert found["exact"] is None and found["outcome_model"] is None


def test_progress_counts_the_folds(trial, table):
    study, target = load_study(trial()), table_policy(read_probability_table(table))
    expected, steps = [], []
    evaluate_on(study, target, estimator="dr", progress=Progress(steps.append, expected.append))
    assert expected == [ESTIMATORS["dr"].folds] and steps == [1] * ESTIMATORS["dr"].folds


@pytest.mark.usefixtures("few_trees", "one_split")
@pytest.mark.parametrize("costs", ["", "[utility]\ncosts = { pill = 0.1 }\n"])
def test_arms_are_worth_what_the_files_of_compare_say_to_the_last_digit(evaluated, trial, table, costs):
    path = trial(propensity="estimate")
    path.write_text(path.read_text() + costs)
    compared = ps.report(load_study(path), policies=["optimal"], epsilons=[1.0]).tables["arms"]
    expected = compared[compared["outcome"] == compared["outcome"].iloc[0]].drop(columns=["outcome", "missing"])
    arms = pd.DataFrame(evaluated(path, "--table", table)["arms"])
    pd.testing.assert_frame_equal(written(arms), expected, check_exact=True)


@pytest.mark.usefixtures("few_trees")
def test_estimated_propensities_are_said_to_be(screen, evaluated, trial, table):
    path = trial(propensity="estimate")
    assert "(confounding) biases every number here" in screen("evaluate", path, "--table", table)
    assert evaluated(path, "--table", table)["estimated_propensities"] is True


def test_rows_of_a_study_are_named_by_their_bins(run, trial, tmp_path):
    path = tmp_path / "policy.csv"
    path.write_text("age,p_pill,p_none\n< 40,1,0\n40 to < 60,1,0\n")
    code, _, err = run("evaluate", trial(), "--table", path)
    assert code == 3 and f"{path} has no row for ≥ 60" in err and "of those with an outcome" in err
    assert len(err.splitlines()) == 1
    path.write_text("age,p_pill,p_none\n30,1,0\n50,1,0\n70,0,1\n")
    code, _, err = run("evaluate", trial(), "--table", path)
    assert code == 3 and err.startswith(f"policysim: {path}: age: must be written as in {tmp_path.name}: ")
    assert all(f'"{level}"' in err for level in ("< 40", "40 to < 60", "≥ 60")) and len(err.splitlines()) == 1


def test_json_has_the_same_numbers_and_a_seed_the_same_document(run, evaluated, study, logs):
    arguments = (logs["exponential"].path, "--policy", "greedy", "--study", study, "--seed", "3")
    found = evaluated(*arguments)
    assert evaluated(*arguments) == found
    assert evaluated(*arguments[:-1], "4")["estimate"]["value"] != found["estimate"]["value"]
    keys = "value standard_error interval ess largest_weight clipped_share warnings estimator n_rows"
    assert set(found["estimate"]) == set(keys.split())
    assert found["best_single_arm"]["arm"] and found["privacy"].startswith("Private:")
    exact = f"{found['exact']['value']:.6f}".replace("-", "−")
    assert exact in run("evaluate", *arguments)[1]


def test_an_outcome_model_that_cannot_take_the_rewards_is_refused(run, study, logs):
    arguments = (logs["exponential"].path, "--policy", "greedy", "--study", study, "--model", "logistic")
    code, _, err = run("evaluate", *arguments)
    first = f"policysim: {logs['exponential'].path}: row 1: reward: must be 0 or 1 for the outcome model logistic, got"
    assert code == 3 and err.startswith(first) and "more" in err


def test_the_outcome_model_is_the_studys_or_the_one_that_is_named(evaluated, trial, table):
    path = trial()
    path.write_text(path.read_text().replace(", harm = -0.5", "").replace("[data.tr", 'model = "logistic"\n[data.tr'))
    found = [evaluated(path, "--table", table, *more) for more in ((), ("--model", "linear"))]
    assert [document["outcome_model"] for document in found] == ["logistic", "linear"]
    assert found[0]["estimate"]["value"] != found[1]["estimate"]["value"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("", "evaluate needs a policy: --table FILE, or --policy NAME with --epsilon E"),
        ("--table p.csv --epsilon 1", "--epsilon only goes with --policy"),
        ("--policy exponential", "--policy exponential needs --epsilon, a number >= 0"),
        (
            "--policy exponential --epsilon 1,2",
            "--epsilon must be one number with a decimal point, such as 0.5, got '1,2'",
        ),
        ("--policy greedy --epsilon 1", "--epsilon does not go with greedy, which has none"),
        ("--policy exponental --epsilon 1", "unknown policy 'exponental'; did you mean 'exponential'?"),
        ("--policy greedy --estimator drr", "--estimator: unknown estimator 'drr'"),
        ("--policy greedy --model forest", "--model: unknown outcome model 'forest'"),
        ("--policy greedy --estimator ips --model linear", "--model only goes with the estimators dm and dr"),
        ("--policy greedy --clip 0", "--clip must be a number > 0, got '0'"),
        ("--policy greedy --seed -1", "--seed must be a whole number >= 0, got '-1'"),
        ("--policy greedy --study nowhere", "unknown study 'nowhere'"),
    ],
)
def test_a_wrong_question_is_one_line(run, options, message):
    code, out, err = run("evaluate", "log.csv", *options.split())
    assert (code, out) == (2, "")
    assert err.startswith(f"policysim: {message}") and err.count("\n") == 1


def test_studies_without_a_log_or_with_their_own_policies_are_sent_elsewhere(run, study, trial):
    # Whatever else is asked: what is missing in the question is not said first.
    for options in ((), ("--policy", "greedy")):
        code, _, err = run("evaluate", study, *options)
        assert code == 2 and f"{study} has no log of treated patients: policysim simulate {study} evaluates" in err
    code, _, err = run("evaluate", "warfarin", "--policy", "greedy")
    assert code == 2 and err == "policysim: warfarin has no log of treated patients\n"
    path = trial()
    code, _, err = run("evaluate", path, "--policy", "greedy")
    assert code == 2 and f"policysim compare {path} tests policies" in err
    code, _, err = run("evaluate", "log.csv", "--policy", "greedy", "--study", path)
    assert code == 2 and "is a study of a log: this needs the model of a scenario" in err


def test_a_log_that_is_not_of_the_scenario_is_refused_by_its_rows(run, study, uniform_log, tmp_path):
    path = tmp_path / "log.csv"
    rows = uniform_log.head(40)
    rows.assign(age=rows["age"].where(rows.index != 7, "ancient")).to_csv(path, index=False)
    code, out, err = run("evaluate", path, "--policy", "greedy", "--study", study)
    assert (code, out) == (3, "")
    assert err == f"policysim: {path}:9: row 8: age: must be one of young, old\n"
    rows.drop(columns="age").to_csv(path, index=False)
    assert f"{path}: unknown column 'age'" in run("evaluate", path, "--policy", "greedy", "--study", study)[2]
    rows.assign(propensity=0.0).to_csv(path, index=False)
    code, _, err = run("evaluate", path, "--policy", "greedy", "--study", study)
    assert code == 3 and len(err.splitlines()) == 1
    assert "row 1: propensity: must be a probability > 0 and <= 1" in err and "(so are 40 rows)" in err


def test_covariates_with_gaps_are_left_out_of_the_model_and_named(screen, evaluated, study, uniform_log, tmp_path):
    path = tmp_path / "log.csv"
    rows = uniform_log.head(400).assign(weight=np.where(np.arange(400) == 7, np.nan, 70.0))
    rows["pulse"] = np.where(np.arange(400) < 2, np.inf, 60.0)
    rows.to_csv(path, index=False)
    asked = (path, "--policy", "greedy", "--study", study)
    for estimator in ("ips", "snips", "dm"):
        evaluated(*asked, "--estimator", estimator)
    assert "weight (no value in 1 rows), pulse (no value in 2 rows)." in screen("evaluate", *asked)
    found = evaluated(*asked)
    rows.drop(columns=["weight", "pulse"]).to_csv(path, index=False)
    assert found["predictors"] == ["infected", "fever", "cough", "smoker", "age"]
    assert found["estimate"]["value"] == evaluated(*asked)["estimate"]["value"]


def test_without_propensities_it_says_what_the_command_offers(run, study, uniform_log, tmp_path):
    path = tmp_path / "log.csv"
    uniform_log.head(50).drop(columns="propensity").to_csv(path, index=False)
    code, _, err = run("evaluate", path, "--policy", "greedy", "--study", study)
    assert code == 3 and len(err.splitlines()) == 1
    assert f"policysim: {path}: there is no column propensity: add it" in err
    assert f"policysim init {path}" in err and "propensity=" not in err


def test_another_estimator_is_one_entry(run, study, logs, monkeypatch):
    """What is halved is not worth knowing; but all that is said of an estimator comes from its entry."""
    half = Estimator("half of IPS", lambda log, _, weights, __: weights * log.rewards / 2, doubt="It halves everything")
    monkeypatch.setitem(ESTIMATORS, "half", half)
    asked = ("evaluate", logs["uniform"].path, "--policy", "uniform", "--study", study, "--estimator")
    code, out, _ = run(*asked, "half")
    assert code == 4
    assert "per patient, half of IPS." in out
    assert "It halves everything" in " ".join(out.split())
    assert "Outcome model" not in out
    whole, halved = (json.loads(run(*asked, name, "--json")[1]) for name in ("ips", "half"))
    assert halved["estimate"]["value"] == pytest.approx(whole["estimate"]["value"] / 2)
    assert halved["best_single_arm"]["value"] == pytest.approx(whole["best_single_arm"]["value"] / 2, abs=1e-12)
    assert run(*asked, "magic")[2].endswith("half\n")
