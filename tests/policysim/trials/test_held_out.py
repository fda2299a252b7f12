"""Policies on held-out patients: nobody is judged by what was fitted to them, and intervals hold what they say."""

import math
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from counted_progress import CountedProgress
from small_trials import ARMS, SPACE, make_trial

import policysim as ps
from policies.catalogue import CATALOGUE, make_policy
from policysim.logs.log_frame import Observed
from policysim.trials import trial_columns
from policysim.trials.estimators import Moments
from policysim.trials.splits import FOLDS, split_log
from policysim.trials.trial_columns import MOST_TIMES, compare_log, is_close

POLICIES = ("greedy", "uniform", "best-fixed", "exponential", "randomized-response", "optimal")


@pytest.fixture(scope="module")
def trial():
    return make_trial(900, 0.3, seed=11, epsilons=(0.5, 4.0), epsilon=4.0, policies=POLICIES, by=("old", "ill"))


@pytest.fixture(scope="module")
def table(trial):
    """The comparison, which announces as many steps as come."""
    progress = CountedProgress()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial_columns, "REPEATS", 4)
        found = compare_log(trial.study, trial.log, progress)
    assert progress.done == progress.expected == 4 * (FOLDS + 3 + 3 * 2)
    return found


@pytest.fixture(scope="module")
def of_one_split(trial):
    """The same of a single split, where medians are plain numbers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial_columns, "REPEATS", 1)
        patch.setattr(trial_columns, "MOST_TIMES", 1)
        return compare_log(trial.study, trial.log)


def test_a_patient_never_has_a_part_in_the_scores_that_judge_them(trial):
    split = next(split_log(trial.log, trial.study))
    data = trial.log.data
    changed = data.rewards.copy()
    changed[0] = 1 - changed[0]
    other = next(split_log(replace(trial.log, data=replace(data, rewards=changed)), trial.study))
    assert np.array_equal(split.folds, other.folds)
    mine = split.folds == split.folds[0]
    assert np.array_equal(split.scores[mine], other.scores[mine])
    # The others' scores did change: the test would notice a leak.
    assert not np.array_equal(split.scores[~mine], other.scores[~mine])


def test_every_row_is_in_one_fold_and_repeats_differ(trial):
    one, other = islice(split_log(trial.log, trial.study), 2)
    assert sorted(np.unique(one.folds)) == list(range(FOLDS))
    assert np.ptp(np.bincount(one.folds)) <= 1
    assert not np.array_equal(one.folds, other.folds)


def test_a_value_is_the_doubly_robust_formula_written_as_a_loop(trial):
    split = next(split_log(trial.log, trial.study))
    policy = make_policy("exponential", epsilon=4.0)
    found = split.evaluate(policy)
    data = trial.log.data
    for row in range(0, data.n_rows, 97):
        problem = split.problems[split.folds[row]]
        chosen = policy.probabilities(problem)[trial.log.records[row]]
        q, a = problem.utilities[trial.log.records[row]], data.actions[row]
        expected = sum(chosen[j] * q[j] for j in range(3)) + chosen[a] / (1 / 3) * (data.rewards[row] - q[a])
        assert found[0][row] @ split.values[row] == pytest.approx(expected)


def test_the_table_has_the_columns_of_compare_and_intervals(trial, table):
    exact = ps.compare(
        ps.DecisionProblem(trial.truth, np.full(SPACE.size, 1 / SPACE.size), ps.AnyRecord(), ARMS), epsilons=[1.0]
    )
    # Bounds and rates of patients are exact, or not there.
    without = {"loss_bound", "least_loss", "most_kept", "best_action_rate"}
    assert set(exact.columns) - without <= set(table.columns)
    for name in ("value", "difference", "loss"):
        known = table.dropna(subset=f"{name}_low")
        assert (known[f"{name}_low"] <= known[name]).all()
        assert (known[name] <= known[f"{name}_high"]).all()
    assert len(table) == len(POLICIES) * 2 * (1 + 2 + 3)


def test_every_private_policy_keeps_its_epsilon_over_all_declared_records(table):
    private = table[table["policy"].isin([name for name in POLICIES if CATALOGUE[name].uses_epsilon])]
    assert (private["epsilon_spent"] <= private["epsilon"] + 1e-12).all()
    assert (private["epsilon_spent"] >= 0).all()


def test_differences_and_losses_of_a_split_are_those_of_the_values(of_one_split):
    table = of_one_split
    for group in (table["group"] == "all", table["group"] == "old"):
        rows = table[group & (table["epsilon"] == 4.0) & (table["level"] != "0")].set_index("policy")
        assert rows.loc["greedy", ["loss", "loss_low", "loss_high"]].tolist() == [0, 0, 0]
        best = rows["value"] - rows["difference"]
        # The same arm in each fold for all policies: value minus difference is its value.
        assert np.ptp(best) < 1e-12
        assert np.allclose(rows.loc["greedy", "value"] - rows["value"], rows["loss"], atol=1e-12)


def test_the_fitted_value_is_what_each_version_is_worth_to_the_problem_that_it_was_made_for(trial, monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 2)
    asked = replace(trial.study, policies=("exponential", "optimal"), epsilons=(4.0,), by=())
    found = compare_log(asked, trial.log).set_index("policy")["fitted_value"]
    splits = islice(split_log(trial.log, trial.study), 2)
    problems = [problem for split in splits for problem in split.problems]
    for name in ("exponential", "optimal"):
        policy = make_policy(name, epsilon=4.0)
        each = [problem.prior @ (policy.probabilities(problem) * problem.utilities).sum(axis=1) for problem in problems]
        assert found[name] == pytest.approx(np.mean(each), abs=1e-12)
    # The optimum of what is known when policies are made.
    assert found["optimal"] > found["exponential"]


@pytest.mark.parametrize(
    ("errors", "close"),
    [(0.0, False), (1.5, False), (1.9, True), (2.1, True), (-2.1, True), (2.6, False), (-4.0, False)],
)
def test_a_difference_is_close_if_other_splits_might_move_0_across_an_end_of_its_interval(errors, close):
    # Values .3 errors apart, to either side of the median: a median of nine has an error of about .125 of theirs.
    apart = 0.3 * np.repeat([-1, 0, 1], 3)
    splits = [Moments(10**6, 0.01 * (errors + each), 0.01) for each in apart]
    assert np.std(apart) * math.sqrt(math.pi / 2 / 9) == pytest.approx(0.1023, abs=1e-4)
    # The error of all together is the root of 1 + .09: 2.046 of them reach to 0.
    assert is_close(splits) == close
    assert not is_close([Moments(10**6, 0.0, 0.0)] * 3)


@pytest.mark.parametrize(("told", "times"), [([False], 1), ([True, False], 2), ([True] * (MOST_TIMES - 1), MOST_TIMES)])
def test_what_is_told_by_little_is_asked_of_more_splits(trial, monkeypatch, told, times):
    """Until it is told no more, or clearly; and of so many at most."""
    asked, answers = [], iter(told)

    def closely(differences):
        asked.append(len(differences))
        return next(answers)

    monkeypatch.setattr(trial_columns, "REPEATS", 2)
    monkeypatch.setattr(trial_columns, "is_close", closely)
    progress = CountedProgress()
    study = replace(trial.study, policies=("uniform", "best-fixed", "exponential"), epsilons=(0.5, 4.0), by=())
    compare_log(study, trial.log, progress)
    # Of the one that is looked at, at the study's epsilon, 4, after each two splits.
    assert asked == [2 * (place + 1) for place in range(len(told))]
    assert progress.done == progress.expected == 2 * times * (FOLDS + 4)


def test_a_strong_effect_is_found_and_percentages_are_given(table):
    # Truth: choosing by age gains 0.3 x min(share of old, share of young) over one arm for all; 0.1 at least here.
    greedy = table[(table["policy"] == "greedy") & (table["group"] == "all")].iloc[0]
    assert greedy["difference_low"] > 0
    assert greedy["benefit_kept"] == 1.0
    uniform = table[(table["policy"] == "uniform") & (table["group"] == "all")].iloc[0]
    assert uniform["normalized_loss"] == pytest.approx(1.0)


def test_a_percentage_of_what_may_be_nothing_is_refused(monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 4)
    trial = make_trial(300, 0.0, seed=2)
    table = compare_log(trial.study, trial.log)
    greedy = table[table["policy"] == "greedy"].iloc[0]
    assert greedy["difference_low"] <= 0
    for name in ("benefit_kept", "benefit_kept_low", "benefit_kept_high"):
        assert table[name].isna().all()


def test_the_same_seed_gives_the_same_table(trial, monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 1)
    assert compare_log(trial.study, trial.log).equals(compare_log(trial.study, trial.log))


def test_an_arm_that_hardly_anybody_got_is_refused(trial):
    data = trial.log.data
    few = replace(trial.log, data=replace(data, actions=np.where(data.actions == 1, 0, data.actions)))
    with pytest.raises(ValueError, match="at least 10 patients with an outcome, pill has 0: leave it out"):
        compare_log(trial.study, few)


@pytest.mark.usefixtures("one_split")
def test_the_effective_sample_size_counts_no_rows_without_an_outcome(trial):
    """Where each arm has the same probability, it is the number of outcomes that are known."""
    known = np.arange(trial.log.data.n_rows) % 5 > 0
    data = replace(trial.log.data, observed=Observed(trial.log.data.rewards, known / known.mean()))
    table = compare_log(replace(trial.study, policies=("uniform",)), replace(trial.log, data=data))
    assert table[table["group"] == "all"]["ess"].tolist() == pytest.approx([known.sum()] * 2)
    old = trial.log.space.groups("old")[0][trial.log.records]
    assert table[table["group"] == "old"]["ess"].tolist() == pytest.approx([*np.bincount(old, known)] * 2)


def test_a_constant_outcome_makes_no_policy_better(monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 2)
    trial = make_trial(200, 0.0, seed=8, policies=("greedy", "uniform", "best-fixed", "randomized-response"))
    data = replace(trial.log.data, rewards=np.full(200, 0.3))
    table = compare_log(trial.study, replace(trial.log, data=data))
    assert (table[["difference", "difference_low", "difference_high"]] == 0).all(axis=None)
    assert table["benefit_kept"].isna().all()


def test_the_difference_is_to_the_arm_chosen_on_other_folds(trial, table, monkeypatch):
    monkeypatch.setattr(trial_columns, "REPEATS", 1)
    split = next(split_log(trial.log, trial.study))
    policy, data = make_policy("exponential", epsilon=4.0), trial.log.data
    apart, weights, names = np.empty(data.n_rows), np.empty(data.n_rows), []
    for fold, problem in enumerate(split.problems):
        rows = split.folds == fold
        best = int((problem.prior @ problem.utilities).argmax())
        names.append(ARMS[best])
        made = policy.probabilities(problem)[trial.log.records[rows]]
        apart[rows] = (made * split.values[rows]).sum(axis=1) - split.values[rows, best]
        taken = data.actions[rows]
        weights[rows] = 3 * np.abs(made[np.arange(len(taken)), taken] - (taken == best))
    rows = compare_log(replace(trial.study, policies=("exponential",), by=()), trial.log)
    row = rows[rows["epsilon"] == 4.0].iloc[0]
    assert row["difference"] == pytest.approx(apart.mean(), abs=1e-12)
    # One more success and failure of each arm, among n patients.
    more = sum((weights[data.actions == arm].mean() / len(apart)) ** 2 for arm in range(3))
    assert row["difference_se"] == pytest.approx(np.sqrt(apart.var(ddof=1) / len(apart) + more))
    assert row["best_arm"] == max(set(names), key=names.count)
    # One treatment for all is just that arm, and differs from it by nothing.
    fixed = table[(table["policy"] == "best-fixed") & (table["group"] == "all")]
    assert (fixed[["difference", "difference_low", "difference_high"]] == 0).all(axis=None)


def test_values_of_two_policies_differ_as_their_differences_from_one_arm_do(table):
    """Medians over splits do not: B was worth 87.2, A 86.5, and their difference 0."""
    for _, rows in table.groupby(["group", "level"]):
        of_a = (rows["value"] - rows["difference"]).dropna()
        assert of_a.to_numpy() == pytest.approx(of_a.iloc[0], abs=1e-12)
