"""Costs of treatments and limits in a log: costs are exact, and the private optimum keeps the limits."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import linprog
from small_trials import ARMS, make_trial

import policysim as ps
from policies.optimal.optimum import SameWithinLimits
from policysim.study.study_problem import problem_of_log
from policysim.trials import trial_columns
from policysim.trials.estimate_value import ESTIMATORS, cross_fit, estimate_value
from policysim.trials.splits import split_log
from policysim.trials.trial_columns import compare_log
from policysim.trials.trial_findings import find

COSTS = (0.0, 0.05, 0.2)
KEYS = """
[utility]
costs = { pill = 0.05, drip = 0.2 }
[capacity]
drip = 0.2
"""


def with_costs(trial, costs=COSTS, **choices):
    """The study and the log of a trial whose arms cost so much."""
    study = replace(trial.study, log=replace(trial.study.log, costs=costs), **choices)
    return study, replace(trial.log, data=replace(trial.log.data, costs=np.array(costs)))


def written(folder, keys=KEYS, n_rows=900, more=""):
    """A study of a log with costs and a limit, as a file."""
    rng = np.random.default_rng(1)
    arm, old = rng.integers(0, 3, n_rows), rng.integers(0, 2, n_rows)
    cured = rng.random(n_rows) < 0.3 + 0.05 * arm + 0.4 * (arm == 2) * old
    pd.DataFrame({"arm": np.array(ARMS)[arm], "old": old, "cured": cured.astype(int)}).to_csv(folder / "log.csv")
    treatments = "[data.treatments]\n" + "".join(f'{arm} = "{arm}"\n' for arm in ARMS)
    text = (
        f'{more}[data]\nfile = "log.csv"\ntreatment = "arm"\npropensity = "equal"\noutcome = {{ cured = 1.0 }}\n'
        f"{treatments}[data.features]\nold = {{ levels = [0, 1] }}\n[privacy]\nepsilon = 1\nepsilons = [1, 3]\n{keys}"
    )
    (folder / "study.toml").write_text(text, encoding="utf-8")
    return str(folder / "study.toml")


def test_costs_are_taken_off_exactly_whatever_the_estimator():
    trial = make_trial(300, 0.2, 1)
    policy = np.random.default_rng(0).dirichlet(np.ones(3), 300)
    fitted = cross_fit(trial.log.data, trial.log.space.codes(trial.log.records).astype(float), folds=5)
    priced = replace(trial.log.data, costs=np.array(COSTS))
    for estimator in ESTIMATORS:
        free, found = (
            estimate_value(data, policy, estimator=estimator, fitted=fitted) for data in (trial.log.data, priced)
        )
        assert found.value == pytest.approx(free.value - (policy @ COSTS).mean(), abs=1e-12)


def test_the_parts_of_a_utility_add_up_and_equal_costs_change_no_choice(monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 4)
    monkeypatch.setattr(trial_columns, "MOST_TIMES", 1)
    policies = ("best-fixed", "greedy", "uniform", "optimal", "randomized-response")
    trial = make_trial(600, 0.3, 2, policies=policies)
    alike, dear = (compare_log(*with_costs(trial, costs)) for costs in ((0.3, 0.3, 0.3), COSTS))
    free = compare_log(trial.study, trial.log)
    np.testing.assert_allclose(alike["value"], free["value"] - 0.3, atol=1e-12)
    np.testing.assert_allclose(alike["difference"], free["difference"], atol=1e-12)
    np.testing.assert_allclose(alike[["difference_costs", "loss_costs"]], 0, atol=1e-12)
    np.testing.assert_allclose(dear["value"], dear["expected_outcome"] - dear["expected_costs"], atol=1e-12)
    np.testing.assert_allclose(dear["expected_costs"], dear[[f"p_{arm}" for arm in ARMS]] @ COSTS, atol=1e-12)
    for column in ("difference", "loss"):
        sign = 1 if column == "difference" else -1
        parts = dear[f"{column}_outcome"] - dear[f"{column}_costs"]
        np.testing.assert_allclose(dear[column], parts, atol=1e-12)
        assert (sign * dear[f"{column}_costs"]).abs().max() > 0.01
    # A cost is known: where all patients have the same chances, nothing is left to estimate.
    alike = dear.set_index("policy").loc["uniform", ["expected_costs_low", "expected_costs_high"]]
    np.testing.assert_allclose(alike.astype(float), np.mean(COSTS), atol=1e-12)


def test_scores_and_their_range_have_the_costs():
    study, log = with_costs(make_trial(400, 0.2, 3))
    free = problem_of_log(
        replace(study, log=replace(study.log, costs=())), replace(log, data=replace(log.data, costs=None))
    )
    problem = problem_of_log(study, log)
    np.testing.assert_allclose(problem.utilities, free.utilities - COSTS, atol=1e-15)
    assert problem.sensitivity.range == pytest.approx(
        free.sensitivity.range
    )  # what costs the same for all moves nobody
    assert study.utility_range == (-0.2, 1.0)
    np.testing.assert_array_equal(problem.outcomes["costs"], np.tile(COSTS, (problem.n_records, 1)))


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 3.0])
def test_the_optimum_within_limits_is_that_of_the_whole_programme(epsilon):
    """Every probability a variable, every pair of records a row: max prior u p within the limits."""
    limits = {"capacity": {"drip": 0.15}, "at_most": {"costs": 0.05}}
    study, log = with_costs(make_trial(500, 0.4, 4), **limits)
    problem = problem_of_log(study, log)
    n, k = problem.utilities.shape
    table = study.policy("optimal-safe", epsilon).probabilities(problem)
    rows, limit = [], []
    for arm in range(k):
        for one in range(n):
            for other in range(n):
                row = np.zeros((n, k))
                row[one, arm] += 1
                row[other, arm] -= math.exp(epsilon)
                rows.append(row.ravel())
                limit.append(0.0)
    for weights, most in ((np.eye(k)[2], 0.15), (np.array(COSTS), 0.05)):
        rows.append(np.outer(problem.prior, weights).ravel())
        limit.append(most)
    whole = linprog(
        -(problem.prior[:, None] * problem.utilities).ravel(),
        A_ub=np.array(rows),
        b_ub=limit,
        A_eq=np.repeat(np.eye(n), k, axis=1),
        b_eq=np.ones(n),
    )
    assert problem.value(table) == pytest.approx(-whole.fun, abs=1e-9)
    shares = problem.prior @ table
    assert shares[2] <= 0.15 + 1e-12 and shares @ COSTS <= 0.05 + 1e-12
    assert (table.max(axis=0) <= math.exp(epsilon) * table.min(axis=0) + 1e-12).all()


def of_drips(folder, outcome, compare=""):
    """A study of which one of five patients may have the drip; outcomes are decided by age and arm."""
    old, arm = np.arange(4000) % 2, np.random.default_rng(5).permutation(4000) % 2
    pd.DataFrame({"arm": arm, "old": old, "y": outcome(old, arm)}).to_csv(folder / "log.csv", index=False)
    (folder / "study.toml").write_text(
        '[data]\nfile = "log.csv"\ntreatment = "arm"\npropensity = "equal"\noutcome = { y = 1.0 }\n[data.treatments]\n'
        '0 = "wait"\n1 = "drip"\n[data.features]\nold = { levels = [0, 1] }\n[privacy]\nepsilon = 1\nepsilons = [1]\n'
        f"[capacity]\ndrip = 0.2\n[compare]\n{compare}\n"
    )
    return ps.load_study(folder / "study.toml")


def test_a_share_of_the_patients_gets_the_scarce_arm_as_theory_says(tmp_path):
    """Two kinds of patients, half of them old; only the old gain by the drip, and one of five may have it.

    Of two records the best draw gives the drip to the old e^epsilon times as often as to the young: 2 s / (1 + e^eps)
    of the young, where s is its share.
    """
    study = of_drips(tmp_path, lambda old, arm: 0.4 + 0.5 * old * arm - 0.1 * (1 - old) * arm)
    assert "optimal-safe" in study.policies
    share, young = 0.2, 2 * 0.2 / (1 + math.e)
    probabilities = study.policy("optimal-safe", 1.0).probabilities(ps.build_problem(study))
    np.testing.assert_allclose(probabilities[:, 1], [young, math.e * young], atol=1e-9)
    made = ps.report(study, epsilons=[1.0])
    options = made.tables["options"].query("section == 'option'").set_index("option")
    assert options.loc["D", "policy"] == "optimal-safe"
    # Its value on held-out patients: what is gained by the old and lost by the young who get it.
    assert options.loc["D", "value"] == pytest.approx(0.4 + 0.25 * math.e * young - 0.05 * young, abs=0.004)
    assert options.loc["D", "epsilon_spent"] <= 1 + 1e-9
    used = made.tables["limits"].set_index("option")
    assert used.loc["D", "limit"] == share
    assert used.loc["D", "value"] == pytest.approx(share, abs=0.005)
    assert used.loc["D", "low"] < share < used.loc["D", "high"]
    assert used.loc["C", "value"] == pytest.approx(0.5, abs=0.01)
    screen = " ".join(str(made).split())
    assert "goes to 20.0 of 100 (at most 20)" in screen
    assert "A: gives drip to more than 20 of 100 patients." in screen
    assert "C: gives drip to more than 20 of 100 patients." in screen
    # Nobody can give the drip to all, which would be best: 0.6. Given to one of five by chance, it gains 0.2 in each.
    assert options.loc["E", ["policy", "hides", "told_apart"]].tolist() == ["same-within-limits", "everything", 0.5]
    assert options.loc["E", "value"] == pytest.approx(0.4 + 0.2 * share, abs=0.004)
    differences = made.tables["differences"].query("option == 'D'").set_index("than")
    gained = 0.25 * math.e * young - 0.05 * young - 0.2 * share
    assert differences.loc["E", "value"] == pytest.approx(gained, abs=0.004)
    assert differences["verdict"].to_dict() == {"A": "worse", "E": "better"}
    assert "A is not possible within the limits. Choose D rather than E: at ε = 1 its patients do better" in screen
    assert "Within limits A breaks them, E does not. D instead of E: +0.0" in screen
    assert "D would have to gain" in screen and "over E" in screen


@pytest.mark.parametrize("adjacency", ["any-record", "one-feature", "sensitive"])
@pytest.mark.parametrize(
    ("capacity", "at_most"),
    [({"drip": 0.2}, 0.03), ({"wait": 0.5, "pill": 0.4, "drip": 0.3}, 1.0), ({"pill": 0.3}, 0.1), ({"drip": 1.0}, 1.0)],
)
def test_the_same_chances_within_limits_are_the_best_shares_of_the_arms(capacity, at_most, adjacency):
    """Where all get the same, shares of the arms are all there is to choose, also if some features are public."""
    hidden = {"adjacency": adjacency, "sensitive": ("old",) if adjacency == "sensitive" else ()}
    study, log = with_costs(make_trial(500, 0.4, 4), capacity=capacity, at_most={"costs": at_most}, **hidden)
    policy = SameWithinLimits(at_most=study.at_most, capacity=study.capacity)
    problem = problem_of_log(study, log)
    table = policy.probabilities(problem)
    values = problem.prior @ problem.utilities
    most = [(0, capacity.get(arm, 1.0)) for arm in ARMS]
    best = linprog(-values, A_ub=[COSTS], b_ub=[at_most], A_eq=np.ones((1, 3)), b_eq=[1], bounds=most)
    np.testing.assert_allclose(table, np.tile(table[0], (len(table), 1)), rtol=1e-12)
    assert table[0] @ values == pytest.approx(-best.fun, abs=1e-9)
    assert (table[0] <= np.array(most)[:, 1] + 1e-9).all() and table[0] @ COSTS <= at_most + 1e-9


@pytest.mark.usefixtures("one_split")
def test_a_is_what_the_draw_within_limits_is_compared_with_where_it_keeps_them(tmp_path):
    limits = "[capacity]\ndrip = 1\npill = 0.2\n"
    made = ps.report(ps.load_study(written(tmp_path, limits)), epsilons=[1.0])
    assert set(made.tables["options"].query("section == 'option'")["option"]) == {"A", "B", "C", "D"}
    assert set(made.tables["differences"].query("option == 'D'")["than"]) == {"A"}
    assert not made.tables["comparison"].columns.str.contains("within").any()
    assert "Within limits D instead of A:" in " ".join(str(made).split())


@pytest.mark.usefixtures("one_split")
def test_no_draw_is_called_within_limits_that_is_not_made_to_keep_them(tmp_path):
    study = ps.load_study(written(tmp_path, "[capacity]\ndrip = 0.1\n[compare]\npolicies = ['optimal']\n"))
    screen = " ".join(str(ps.report(study, epsilons=[1.0])).split())
    assert "Within limits No option is made to keep them, as the policy optimal-safe is. Held-out use of B:" in screen


@pytest.mark.usefixtures("one_split")
def test_who_is_harmed_within_limits_is_harmed_instead_of_what_keeps_them(tmp_path):
    """The young lose the drip that the same chances would give them."""
    made = ps.report(of_drips(tmp_path, lambda old, arm: 0.2 + 0.3 * arm + 0.3 * old * arm, 'by = ["old"]'))
    young = 2 * 0.2 / (1 + math.e)
    harmed = made.tables["harmed"].query("option == 'D'")
    assert harmed[["than", "group"]].values.tolist() == [["E", "old 0"]]
    assert harmed["value"].item() == pytest.approx(0.3 * (0.2 - young), abs=0.004)
    assert "By D instead of E the group “old 0”" in " ".join(str(made).split())


def test_each_version_of_a_private_draw_keeps_to_epsilon_and_to_the_limits():
    study, log = with_costs(make_trial(500, 0.4, 6), capacity={"drip": 0.1}, at_most={"costs": 0.04})
    policy = study.policy("optimal-safe", 1.0)
    for problem in next(split_log(log, study)).problems:
        table = policy.probabilities(problem)
        assert (table.max(axis=0) <= math.e * table.min(axis=0) + 1e-12).all()
        shares = problem.prior @ table
        assert shares[2] <= 0.1 + 1e-9 and shares @ COSTS <= 0.04 + 1e-9


@pytest.mark.usefixtures("one_split")
@pytest.mark.parametrize(("costs", "named"), [((0.0, 0.02, 0.1), True), ((0.0, 0.0005, 0.0005), False)])
def test_costs_are_named_where_they_make_a_tenth_of_a_gain_or_loss(costs, named):
    trial = make_trial(800, 0.4, 7, policies=("best-fixed", "greedy", "uniform", "exponential", "optimal"))
    study, log = with_costs(trial, costs)
    found = find(study, log, problem_of_log(study, log), compare_log(study, log))
    from policysim.trials.trial_words import trial_screen  # noqa: PLC0415

    screen = trial_screen(study, found, 1.0)
    lines = {line.label: line.text for line in screen.lines}
    assert ("costs are" in lines["Choosing for each"]) == named
    differences = found.differences.query("option == 'C' and than == 'A'").set_index("outcome")
    assert list(differences.index) == ["utility", "outcome", "costs"]
    assert differences.loc["utility", "value"] == pytest.approx(
        differences.loc["outcome", "value"] - differences.loc["costs", "value"], abs=1e-12
    )


@pytest.mark.usefixtures("one_split")
def test_a_report_says_what_the_draw_within_the_limits_uses(tmp_path, screen):
    files = ("--out", tmp_path / "out", "--figures", "frontier")
    said = screen("compare", written(tmp_path), *files, "--at-most", "costs=0.06")
    assert "Utility: the outcome minus costs (pill 0.05, drip 0.2)." in said
    assert "D Best private draw within limits" in said
    assert "A is not possible within the limits. " in said
    limits = pd.read_csv(tmp_path / "out" / "limits.csv")
    assert set(limits["what"]) == {"drip", "costs"}
    kept = limits[limits["option"] == "D"]
    assert (kept["value"] <= kept["limit"] + 0.02).all()
    comparison = pd.read_csv(tmp_path / "out" / "comparison.csv")
    within = comparison.query("policy == 'optimal-safe' and group == 'all' and epsilon == 1").iloc[0]
    assert kept.query("what == 'drip' and epsilon == 1")["value"].item() == pytest.approx(within["p_drip"], rel=1e-5)
    arms = pd.read_csv(tmp_path / "out" / "arms.csv").set_index(["outcome", "arm"])["mean"]
    assert arms["utility", "drip"] == pytest.approx(arms["cured", "drip"] - 0.2, abs=1e-5)


@pytest.mark.usefixtures("one_split")
def test_choose_and_evaluate_know_costs_and_limits(tmp_path, run, screen, document):
    study = written(tmp_path)
    found = json.loads(run("choose", study, "--at-most", "costs=0.05", "--json")[1])
    assert found["details"]["wish"]["at_most"] == {"costs": 0.05}
    assert {row["option"]: row["met"] for row in found["demands"]} == {"A": False, "B": True, "C": False, "D": True}
    # D, which is chosen, is a single arm without a limit; B has the costs of a quarter of drips.
    limits = [f"{letter}: gives drip to more than 20 of 100 patients." for letter in "ABC"]
    assert [text for text in found["warnings"] if "of 100 patients" in text] == limits
    policy = tmp_path / "policy.csv"
    policy.write_text("old,p_wait,p_pill,p_drip\n0,1,0,0\n1,0,0,1\n")
    used = document("evaluate", study, "--table", policy)["use"]
    old = pd.read_csv(tmp_path / "log.csv")["old"].mean()
    use = {row["what"]: row["value"] for row in used}
    assert use["drip"] == pytest.approx(old) and use["costs"] == pytest.approx(0.2 * old)
    said = screen("evaluate", study, "--table", policy)
    assert "units of utility per patient, taken off the value." in said
    assert "(the study's limit: 20)" in said


@pytest.mark.usefixtures("one_split")
def test_a_treatment_that_saves_is_said_to_and_its_arm_is_worth_more(tmp_path, screen):
    path = written(tmp_path, "[utility]\ncosts = { pill = 0.05, drip = -0.1 }\n")
    made = ps.report(ps.load_study(path), policies=["optimal"], epsilons=[1.0])
    assert "Utility: the outcome minus costs (pill 0.05, drip saves 0.1)." in " ".join(str(made).split())
    means = made.tables["arms"].pivot(index="arm", columns="outcome", values="mean")
    assert (means["utility"] - means["cured"])["drip"] == pytest.approx(0.1, abs=1e-6)
    policy = tmp_path / "policy.csv"
    policy.write_text("old,p_wait,p_pill,p_drip\n0,0,0,1\n1,0,0,1\n")
    said = screen("evaluate", path, "--table", policy)
    assert "units of utility per patient, taken off the value; below 0 is a saving." in said
