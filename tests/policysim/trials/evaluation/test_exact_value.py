"""The exact value is recovered from simulated logs, and what is wrong with a log is seen."""

import numpy as np
import pytest

import policysim as ps

TARGETS = {"greedy": (), "best-fixed": (), "optimal": ("--epsilon", "1"), "exponential": ("--epsilon", "10")}
ESTIMATORS = ("ips", "snips", "dr")


@pytest.mark.parametrize("target", TARGETS)
def test_the_exact_value_is_recovered(study, problem, logged, evaluated, target):
    """Five standard errors, computed from the model and not from the log: 1 in 1.7 million for each estimate.

    Each of 8,000 rows adds w r to IPS, and at most that much varies in the others but for the exact value's square:
    Var(w r) <= E[w^2 r^2] = sum over records and actions of prior p^2 / p_logging E[r^2 | x, a], and r is at least
    `lowest`, so that E[r^2 | x, a] <= lowest u(x, a), rewards being <= 0. SNIPS has residuals r - v in place of r,
    r^2 + v^2 at most as both are <= 0; the residuals of DR are of about that size, twice that for safety.
    """
    epsilon = float(TARGETS[target][1]) if TARGETS[target] else np.inf
    p, p_logging = ps.make_policy(target, epsilon=epsilon).probabilities(problem), logged.policy.probabilities(problem)
    exact = float((problem.prior[:, None] * p * problem.utilities).sum())
    utility = ps.load_study(study).utility
    lowest = -sum(utility.weights.values()) - max(utility.costs.values())
    second = problem.prior[:, None] * p**2 / p_logging * (lowest * problem.utilities + exact**2)
    error = np.sqrt(2 * second.sum() / logged.patients)
    for estimator in ESTIMATORS:
        options = ("--policy", target, *TARGETS[target], "--study", study, "--estimator", estimator)
        found = evaluated(logged.path, *options)
        assert found["exact"]["agrees"]
        assert found["exact"]["value"] == pytest.approx(exact, abs=1e-12)
        assert abs(found["estimate"]["value"] - exact) <= 5 * error
        assert found["exact"]["errors_apart"] == pytest.approx(
            abs(found["estimate"]["value"] - exact) / found["estimate"]["standard_error"]
        )
        assert found["exact"]["errors_apart"] <= 5


def test_a_log_of_other_utilities_is_exit_code_four(study, uniform_log, tmp_path, run):
    log = uniform_log.copy()
    log["reward"] -= 0.5  # as if something had been left out of the utility
    log.to_csv(tmp_path / "log.csv", index=False)
    code, out, err = run("evaluate", tmp_path / "log.csv", "--policy", "greedy", "--study", study)
    assert (code, err) == (4, "")
    assert "they DISAGREE" in out and "Other patients, utilities or propensities" in out


def test_wrong_propensities_are_exit_code_four(study, uniform_log, tmp_path, run):
    log = uniform_log.copy()
    log["propensity"] /= 4  # then weights, and the value, are four times what they should be
    log.to_parquet(tmp_path / "log.parquet")
    options = ("--policy", "greedy", "--study", study, "--estimator", "ips")
    code, out, _ = run("evaluate", tmp_path / "log.parquet", *options)
    assert code == 4 and "DISAGREE" in out and "propensities of" in out and "seem too small" in out


def test_clipping_is_named_where_it_biases(study, logs, run):
    options = ("--policy", "greedy", "--study", study, "--estimator", "ips", "--clip", "0.5")
    code, out, _ = run("evaluate", logs["uniform"].path, *options)
    assert code == 4 and "Clipping biases the estimate" in out


def test_few_patients_who_do_not_show_a_rare_death_are_no_disagreement(study, run, tmp_path):
    """The planted mistake: a verdict by the sample's own error alone, which knows nothing of deaths not drawn."""
    verdicts = []
    for seed in range(6):
        path = tmp_path / f"{seed}.csv"
        assert run("simulate", study, "--patients", 12, "--log", path, "--seed", seed)[0] == 0
        code, out, _ = run("evaluate", path, "--policy", "uniform", "--study", study, "--estimator", "ips")
        assert code == 0
        verdicts.append("no verdict" in out)
    assert any(verdicts)
