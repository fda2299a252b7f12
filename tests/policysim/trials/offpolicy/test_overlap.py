"""The warnings of an estimate: each where it is due, and none where all is well."""

import numpy as np
import pandas as pd
import pytest

from policysim.logs.log_frame import LoggedData, covariate_frame, read_log_frame
from policysim.trials.estimators import MODEL_BIAS, importance_weights
from policysim.trials.evaluate_log import evaluate_log
from policysim.trials.holes import SURPRISE_OF_GROUP, support_caveats


def trial(n=2000, seed=0, *, share=(1 / 3, 1 / 3, 1 / 3), avoid=False, stated=None):
    """A trial of three arms whose reward is normal; `avoid`: arm c is never given to those with x > 0."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    share = np.tile(share, (n, 1))
    if avoid:
        share[x > 0] = [0.5, 0.5, 0]
    actions = (rng.random(n)[:, None] >= np.cumsum(share, axis=1)).sum(axis=1)
    propensity = share[np.arange(n), actions] if stated is None else np.array(stated)[actions]
    columns = {"action": np.array(list("abc"))[actions], "reward": rng.normal(size=n), "propensity": propensity, "x": x}
    return pd.DataFrame(columns)


POLICY = np.tile([0.2, 0.2, 0.6], (2000, 1))


@pytest.mark.parametrize("estimator", ["ips", "snips", "dm", "dr"])
def test_nothing_is_said_of_a_good_trial(estimator):
    # Of the direct method always what its interval leaves out.
    assert evaluate_log(trial(), POLICY, estimator=estimator).warnings == (() if estimator != "dm" else (MODEL_BIAS,))


@pytest.mark.parametrize("estimator", ["ips", "snips", "dm", "dr"])
def test_an_action_that_the_log_never_takes_is_named_with_its_share(estimator):
    log = trial(share=(0.5, 0.5, 0))
    said = evaluate_log(log, POLICY, estimator=estimator, actions=["a", "b", "c"]).warnings
    assert said[0].startswith("no overlap: the log never takes c, on which the evaluated policy puts 60.0% of its")


def test_an_action_that_some_patients_never_get_is_named_with_about_the_share_that_is_missing():
    # Half of the patients (x > 0) never get c, to which the policy gives 0.6: 30 % are missing.
    where, said = evaluate_log(trial(avoid=True), POLICY, estimator="dr").warnings
    cut = float(where.split("x ≥ ")[1].split(":")[0])
    assert where.startswith("no overlap, x ≥ ") and ": nobody got c (0 of " in where and abs(cut) < 0.05
    assert said.startswith("overlap fails for c: about ")
    missing = float(said.split("about ")[1].split("%")[0]) / 100
    # The mean of w 1{c} has variance at most 0.6 * 1.8 / 2000, a standard deviation of 0.023; four of them.
    assert missing == pytest.approx(0.3, abs=4 * 0.023)


def test_propensities_that_are_too_small_are_noticed():
    said = evaluate_log(trial(stated=[1 / 3, 1 / 3, 0.15]), POLICY, estimator="ips").warnings
    assert said[0].startswith("propensities of c seem too small: its weights sum to 2.")


def test_full_overlap_is_seldom_doubted_however_rare_an_action():
    # At most 0.05 % each for three actions, were sums of few large weights normal. But c has Poisson(4) rows of weight
    # 60, and 11 of them (0.3 %) are beyond 3.5 standard deviations: of 200 logs 0.8, and four deviations more.
    rng = np.random.default_rng(1)
    share, doubted = np.array([0.6, 0.39, 0.01]), 0
    for _ in range(200):
        actions = rng.choice(3, 400, p=share)
        log = pd.DataFrame({"action": actions, "reward": rng.normal(size=400), "propensity": share[actions]})
        said = evaluate_log(log, POLICY[:400], estimator="ips", actions=[0, 1, 2]).warnings
        doubted += any(word.startswith(("overlap", "propensities")) for word in said)
    assert doubted <= 4


def sites(n, seed, closed=None):
    """A trial at twenty sites; at the closed one, c is never given."""
    rng = np.random.default_rng(seed)
    site = rng.integers(20, size=n)
    c = np.where(site == closed, 0, 1 / 3)
    share = np.column_stack([(1 - c) / 2, (1 - c) / 2, c])
    actions = (rng.random(n)[:, None] >= np.cumsum(share, axis=1)).sum(axis=1)
    columns = {"action": np.array(list("abc"))[actions], "propensity": share[np.arange(n), actions]}
    named = [f"s{number}" for number in site.tolist()]
    return pd.DataFrame(columns | {"reward": rng.normal(size=n), "site": named, "x": rng.normal(size=n)})


@pytest.mark.parametrize("estimator", ["ips", "dr"])
def test_a_small_group_that_never_gets_an_action_is_named(estimator):
    # 3 % of the policy are missing: 1.6 of the standard deviations that all rows together have. Only its site, of about
    # 150 patients and sqrt(0.6 * 150 / 1.8) = 7 deviations, gives it away.
    log = sites(3000, 1, closed=7)
    there = int((log["site"] == "s7").sum())
    said = evaluate_log(log, np.tile([0.2, 0.2, 0.6], (3000, 1)), estimator=estimator).warnings
    assert said == (
        f"overlap fails for c where site = s7: the log gives it to 0 of {there} patients there, and the evaluated "
        f"policy puts {0.6 * there / 3000:.1%} of its probability on that.",
    )


def test_good_logs_are_seldom_doubted():
    # All rows together: two-sided beyond 3.5 standard deviations, 0.05 % for each of three actions, of 200 logs 0.3 and
    # four deviations more. Groups: Maurer's bound, 72 of them in 200 logs at exp(-12.5): 0.05.
    doubted, located = 0, 0
    for seed in range(200):
        said = evaluate_log(sites(500, seed), POLICY[:500], estimator="ips").warnings
        located += any(" where " in word for word in said)
        doubted += any(word.startswith(("overlap fails for c:", "propensities")) for word in said)
    assert doubted <= 2
    assert located == 0


def test_a_group_is_doubted_where_its_weights_sum_to_far_too_little():
    # The same from the definition, by loops over rows, for logs in which propensities are wrong here and there.
    for seed in range(10):
        rng = np.random.default_rng(seed)
        log = sites(800, seed)
        log["group"] = rng.choice(["u", "v", None], 800, p=[0.3, 0.6, 0.1])
        log["propensity"] *= np.where(log["group"] == "u", rng.uniform(1, 2.9), 1)
        table = rng.dirichlet(np.ones(3), 800)
        data = read_log_frame(log)
        w = importance_weights(data, table).raw
        expected, groups = [], log["group"].tolist()
        for action, name in enumerate("abc"):
            worst = []
            for group in ("u", "v"):
                rows = [i for i in range(800) if groups[i] == group]
                mass = sum(table[i, action] for i in rows)
                got = sum(w[i] for i in rows if data.actions[i] == action)
                most = w[data.actions == action].max()
                worst.append(((mass - got) / np.sqrt(mass * most), f"overlap fails for {name} where group = {group}:"))
            if max(worst)[0] > SURPRISE_OF_GROUP:
                expected.append(max(worst)[1])
        found = list(support_caveats(data, table, w, log[["group"]]).values())
        assert [said.split(" the log")[0] for said in found] == expected


def test_groups_are_quarters_of_many_numbers_and_never_identifiers():
    log = trial(avoid=True)
    frame = log[["x"]].assign(name=[f"p{i}" for i in range(2000)], notes=[[] for _ in range(2000)])
    frame.loc[frame.index[:5], "x"] = [np.nan, np.inf, -np.inf, np.nan, np.inf]
    data = read_log_frame(log)
    (said,) = support_caveats(data, POLICY, importance_weights(data, POLICY).raw, frame).values()
    # Quartiles of normal numbers: those above the median never get c.
    low, _, _, high = np.quantile(log["x"], (0.49, 0.51, 0.74, 0.76))
    bounds = said.split("where ")[1].split(":")[0].replace("x", "").replace("<", "").replace(">=", "").split()
    assert all(low < float(bound) < high for bound in bounds)
    assert covariate_frame(log).columns.tolist() == ["x"]


def test_a_group_of_a_few_patients_is_no_finding():
    """The few always got b where the policy gives a, which it hardly gives to others: weights of a are 0.02 at most, so
    that even for one patient 1 is more than 5 of its standard deviations sqrt(0.02) away from 0.
    """
    for n_few, told in ((1, False), (9, False), (10, True)):
        site = np.array(["many"] * 2000 + ["few"] * n_few)
        actions = np.where(site == "few", 1, np.arange(len(site)) % 2)
        probabilities = np.tile([0.01, 0.99], (len(site), 1))
        probabilities[site == "few"] = [1, 0]
        log = LoggedData(actions, np.zeros(len(site)), np.full(len(site), 0.5), ("a", "b"))
        found = support_caveats(
            log, probabilities, importance_weights(log, probabilities).raw, pd.DataFrame({"site": site})
        )
        assert any("site = few" in warning for warning in found.values()) == told


def test_few_effective_rows_are_said():
    said = evaluate_log(trial(100), POLICY[:100], estimator="ips").warnings
    assert any(word.startswith("effective sample size ") and "of 100 rows: below 200" in word for word in said)


def test_rare_and_large_losses_are_said():
    log = trial()
    log["reward"] = 0.0
    log.loc[[5, 900], "reward"] = -100.0
    for estimator in ("ips", "snips", "dr"):
        assert any(
            word.startswith("a few rows decide") for word in evaluate_log(log, POLICY, estimator=estimator).warnings
        )


@pytest.mark.parametrize("estimator", ["snips", "dm", "dr"])
def test_rewards_that_do_not_vary_are_no_certainty(estimator):
    log = trial().assign(reward=1.0)
    found = evaluate_log(log, POLICY, estimator=estimator)
    assert found.standard_error == 0
    said = "nothing varies from row to row: the standard error of 0 is no sign of certainty."
    assert found.warnings == ((said, MODEL_BIAS) if estimator == "dm" else (said,))


def test_an_action_of_too_few_rows_to_model_is_named():
    log = trial(400, share=(0.49, 0.49, 0.02))
    assert 0 < (log["action"] == "c").sum() < 10
    said = evaluate_log(log, POLICY[:400], estimator="dm").warnings
    assert said[-1] == "too few rows to model the outcome of c: a mean stands in for it."
