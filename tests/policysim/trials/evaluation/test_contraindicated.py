"""Contraindications in an evaluation: a policy that gives what must not be given, and the best arm that may be."""

import numpy as np
import pandas as pd
import pytest
from small_studies import SCENARIO, STUDY, write_small_study

import policysim as ps
from policies.records import encode
from policysim.cli.main import main
from policysim.files.bad_rows import DataError
from policysim.files.data_table import DataTable
from policysim.logs.log_frame import LoggedData
from policysim.trials.arms import SPLITS, difference_from_one_arm
from policysim.trials.estimate_value import cross_fit
from policysim.trials.estimators import moments, over_splits
from policysim.trials.outside_policy import allowed_rows

PILL = '[treatments.pill]\ntitle = "pill"\n'
SMOKERS = SCENARIO.replace(PILL, f'{PILL}contraindicated = [{{ smoker = 1 }}, {{ age = "old", fever = 1 }}]\n')
PUBLIC = STUDY.replace('adjacency = "any-record"', 'public = ["age", "smoker", "fever"]')
PATIENTS = 4000


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    return write_small_study(tmp_path_factory.mktemp("masked"), PUBLIC, SMOKERS)


@pytest.fixture(scope="module")
def path(study):
    made = study.parent / "log.csv"
    assert main(["simulate", str(study), "--policy", "uniform", "--patients", str(PATIENTS), "--log", str(made)]) == 0
    return made


@pytest.fixture(scope="module")
def log(path):
    return ps.read_log(path)


@pytest.fixture(scope="module")
def must_not(log):
    """By the conditions of the scenario, written out."""
    return ((log["smoker"] == 1) | ((log["age"] == "old") & (log["fever"] == 1))).to_numpy()


def test_who_may_get_what_is_what_the_problem_allows(study, log, must_not):
    loaded = ps.load_study(study)
    problem = ps.build_problem(loaded)
    found = allowed_rows(loaded, problem.actions, DataTable("log", log))
    records = encode(loaded.space, log)
    np.testing.assert_array_equal(found, problem.admissible[records])
    np.testing.assert_array_equal(~found[:, problem.actions.index("pill")], must_not)
    turned = allowed_rows(loaded, problem.actions[::-1], DataTable("log", log))
    np.testing.assert_array_equal(turned, found[:, ::-1])
    assert allowed_rows(ps.load_study("covid"), problem.actions, DataTable("log", log)) is None


@pytest.mark.parametrize("options", [[], ["--study", "small.toml"], ["--workers", "1"]])
def test_a_table_that_gives_what_is_contraindicated_is_refused_in_one_line(run, path, must_not, options, monkeypatch):
    # The study is named, or known from beside the log; rows are read, or counted.
    monkeypatch.chdir(path.parent)
    # The table knows age alone; its last line gives young smokers the pill.
    table = path.with_name("policy.csv")
    table.write_text("age,p_none,p_syrup,p_pill\nold,0.5,0.5,0\nyoung,0.25,0.25,0.5\n")
    code, out, err = run("evaluate", path, "--table", table, *options)
    wrong = must_not & (pd.read_csv(path)["age"] == "young").to_numpy()
    (line,) = err.splitlines()
    assert (code, out) == (3, "")
    assert line.endswith(
        "pill is contraindicated for this patient (smoker), and the policy gives it with probability 0.5; it does so "
        f"to {int(wrong.sum()):,} of {PATIENTS:,} patients, who must not get it"
    )
    assert "--workers" in options or f"log.csv:{int(wrong.argmax()) + 2}: row " in line


def test_a_table_that_keeps_to_them_is_evaluated(evaluated, path, log, must_not):
    table = path.with_name("kept.csv")
    table.write_text("smoker,fever,age,p_none,p_syrup,p_pill\n0,0,old,0,0.5,0.5\n0,0,young,0,0.5,0.5\n"
        "0,1,young,0,0.5,0.5\n0,1,old,0.5,0.5,0\n"
        "1,0,old,0.5,0.5,0\n1,0,young,0.5,0.5,0\n1,1,old,0.5,0.5,0\n1,1,young,0.5,0.5,0\n")  # fmt: skip
    found = evaluated(path, "--table", table, "--estimator", "ips")
    assert found["contraindicated"] == {"pill": int(must_not.sum())}
    p = np.where(log["action"] == "syrup", 0.5, 0.5 * ((log["action"] == "none") == must_not))
    assert found["estimate"]["value"] == pytest.approx((p / log["propensity"] * log["reward"]).mean(), rel=1e-12)
    assert "for patients who may get" in found["best_single_arm"]["arm"]


def test_the_screen_says_who_must_not_get_what(run, path, must_not):
    _, out, _ = run("evaluate", path, "--policy", "best-fixed")
    said = " ".join(out.split())
    assert f"Contraindicated by small, and never given by the policy: pill for {int(must_not.sum()):,}." in said
    assert max(map(len, out.splitlines())) <= 100


@pytest.mark.parametrize("policy", ["uniform", "best-fixed", "randomized-response", "optimal"])
def test_a_policy_by_name_is_made_under_the_mask_and_agrees_with_its_exact_value(evaluated, study, path, policy):
    options = [] if policy in ("uniform", "best-fixed") else ["--epsilon", "1"]
    found = evaluated(path, "--policy", policy, *options)
    problem = ps.build_problem(ps.load_study(study))
    table = ps.make_policy(policy, epsilon=1.0).probabilities(problem)
    assert found["exact"]["agrees"]
    assert found["exact"]["value"] == pytest.approx(problem.value(table), rel=1e-12)
    low, high = found["best_single_arm"]["interval"]
    # One treatment for all, as compare has it, is the best for each set of patients who may get the same.
    exact = problem.value(table) - problem.value(ps.make_policy("best-fixed").probabilities(problem))
    assert low <= exact <= high


@pytest.mark.parametrize("estimator", ["ips", "dr"])
def test_the_arm_of_each_group_is_that_of_a_loop_over_groups_arms_and_rows(estimator):
    rng = np.random.default_rng(3)
    n, mask = 90, np.repeat([[1, 1, 1], [1, 1, 0], [0, 0, 1]], 30, axis=0).astype(bool)
    p = np.where(mask, rng.random((n, 3)), 0)
    p /= p.sum(axis=1, keepdims=True)
    actions = np.array([rng.choice(np.flatnonzero(row)) for row in mask])
    data = LoggedData(actions, rng.normal(size=n), 1 / mask.sum(axis=1), ("a", "b", "c"))
    fitted = None if estimator == "ips" else cross_fit(data, rng.normal(size=(n, 2)), folds=5)
    found = difference_from_one_arm(data, p, mask, seed=8, estimator=estimator, fitted=fitted)
    q = np.zeros((n, 3)) if fitted is None else fitted.predictions
    own, splits = np.random.default_rng(8), []
    for _ in range(SPLITS):
        folds, terms = own.permutation(n) % 5, np.zeros(n)
        for i in range(n):
            means = np.full(3, -np.inf)
            for arm in np.flatnonzero(mask[i]):
                group = range(i // 30 * 30, i // 30 * 30 + 30)
                rows = [j for j in group if folds[j] != folds[i] and actions[j] == arm]
                means[arm] = np.average(data.rewards[rows], weights=1 / data.propensities[rows])
            best, a = int(means.argmax()), actions[i]
            w = (p[i, a] - (a == best)) / data.propensities[i]
            terms[i] = p[i] @ q[i] - q[i, best] + w * (data.rewards[i] - q[i, a])
        assert not terms[60:].any()  # the third group has no choice
        splits.append(moments(terms))
    assert (found.value, *found.interval) == pytest.approx(over_splits(splits)[:3], rel=1e-9)


def test_evaluate_log_takes_the_study_whose_contraindications_hold(study, log, must_not):
    loaded, actions = ps.load_study(study), ["none", "syrup", "pill"]
    kept = np.where(must_not[:, None], [0.5, 0.5, 0], [0, 0.5, 0.5])
    policy = pd.DataFrame(kept, columns=actions, index=log.index)
    assert ps.evaluate_log(log, policy, study=loaded) == ps.evaluate_log(log, policy)
    first = int(must_not.argmax())
    policy.iloc[first] = [0.75, 0, 0.25]
    with pytest.raises(DataError, match=rf"^log: row {first}: pill is contraindicated .* to 1 of 4,000 patients"):
        ps.evaluate_log(log, policy, study=loaded)
    with pytest.raises(DataError, match=r"log: unknown column 'smoker'.*; it is a feature of small"):
        ps.evaluate_log(log.drop(columns="smoker"), policy, study=loaded)
    with pytest.raises(DataError, match=r"^log: row 5: smoker: must be one of 0, 1$"):
        ps.evaluate_log(log.assign(smoker=log["smoker"].where(log.index != 5, 2)), policy, study=loaded)
    with pytest.raises(DataError, match="small: unknown treatment 'tea'"):
        renamed = log.assign(action=log["action"].cat.rename_categories({"syrup": "tea"}))
        ps.evaluate_log(renamed, policy.rename(columns={"syrup": "tea"}), study=loaded)
