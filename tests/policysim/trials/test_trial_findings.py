"""What a report on a log finds: planted logs of each verdict, numbers that are those of its tables, words that obey."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.stats import binomtest, norm
from small_trials import SPACE, make_trial

from policies.catalogue import make_policy
from policysim.report.findings import verdict_of_interval
from policysim.study.study_problem import problem_of_log
from policysim.trials import evidence, trial_columns
from policysim.trials.contrasts import difference_of_means
from policysim.trials.diagnostics import LogCaveats
from policysim.trials.trial_columns import compare_log
from policysim.trials.trial_findings import find
from policysim.trials.trial_words import CONCLUSIONS, trial_screen

pytestmark = pytest.mark.usefixtures("one_split")
# Nothing is wrong with these logs.
SOUND = LogCaveats()


def planted(truth, n_rows=1500, *, policies=("exponential", "optimal"), epsilons=(0.5, 1.0, 4.0), epsilon=4.0, seed=6):
    """A trial with these probabilities of success, (12, 3), by record and arm."""
    trial = make_trial(n_rows, 0.0, 5, policies=policies, epsilons=epsilons, epsilon=epsilon, by=("old",))
    rng = np.random.default_rng(seed)
    rewards = (rng.random(n_rows) < truth[trial.log.records, trial.log.data.actions]).astype(float)
    data = replace(trial.log.data, rewards=rewards)
    return trial.study, replace(trial.log, data=data, outcomes={"success": rewards})


def found(study, log, named=()):
    """The findings, and the comparison that they are of."""
    names = ("greedy", "best-fixed", "uniform", "exponential", *study.policies)
    compared = compare_log(replace(study, policies=tuple(dict.fromkeys(names))), log)
    return find(study, log, problem_of_log(study, log), compared, named=named, doubts=SOUND), compared


@pytest.fixture(scope="module")
def crossed():
    """A trial in which one drug helps the young and another the old: the study, its log, findings and comparison."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial_columns, "REPEATS", 1)
        patch.setattr(evidence, "LOOKS", (20,))
        study, log = planted(CROSSED)
        return study, log, *found(study, log, named=("optimal", "exponential"))


def row_of(table, **keys):
    """The one row with these values."""
    for column, value in keys.items():
        table = table[table[column] == value]
    assert len(table) == 1
    return table.iloc[0]


OLD = SPACE.codes(np.arange(SPACE.size))[:, 0]
# One drug helps the young, the other the old; one arm helps all, a little more than the second; all are alike.
CROSSED = np.column_stack([np.full(12, 0.2), 0.2 + 0.7 * (1 - OLD), 0.2 + 0.7 * OLD])
ONE_BEST = np.tile([0.1, 0.9, 0.2], (12, 1))
ALIKE = np.full((12, 3), 0.5)


@pytest.mark.parametrize(
    ("truth", "epsilon", "verdict", "advice", "best"),
    [
        (CROSSED, 4.0, "better", "Choose B rather than A", ""),
        (ONE_BEST, 0.5, "worse", "Choose A rather than B", "“pill” has"),
        (ALIKE, 4.0, "not shown", "The data do not show that B or C is better", "The data cannot show which"),
    ],
    ids=["better", "worse", "not shown"],
)
def test_planted_logs_have_their_verdicts_and_words(truth, epsilon, verdict, advice, best):
    # Only what draws at random loses where one arm is best for all.
    policies = ("randomized-response",) if verdict == "worse" else ("exponential", "optimal")
    study, log = planted(truth, policies=policies, epsilon=epsilon)
    findings, _ = found(study, log)
    screen = trial_screen(study, findings, epsilon)
    lines = {line.label: line.text for line in screen.lines}
    assert row_of(findings.differences, option="B", than="A", epsilon=epsilon)["verdict"] == verdict
    assert screen.advice.startswith(advice)
    assert lines["Drawn privately"].endswith(f"{CONCLUSIONS[verdict].format('B')}.")
    assert lines["Best single arm"].startswith(best)


def test_numbers_are_those_of_the_comparison_and_of_the_arms(crossed):
    study, log, findings, compared = crossed
    everyone = compared[compared["group"] == "all"].set_index(["policy", "epsilon"])
    options, differences = findings.options, findings.differences
    assert not options.duplicated(["section", "option", "epsilon"]).any()
    for row in options.to_dict("records"):
        own = everyone.loc[(row["policy"], row["epsilon"])]
        assert [row[name] for name in ("value", "low", "high", "told_apart", "epsilon_spent")] == [
            own[name] for name in ("value", "value_low", "value_high", "guess_rate", "epsilon_spent")
        ]
        if row["option"] != "A":
            other = row_of(differences, option=row["option"], than="A", epsilon=row["epsilon"])
            ends = [own[f"difference{end}"] for end in ("", "_low", "_high")]
            assert [other[name] for name in ("value", "low", "high")] == ends
            assert other["verdict"] == verdict_of_interval(*ends[1:])
        if row["option"] == "B":
            other = row_of(differences, option="B", than="C", epsilon=row["epsilon"])
            assert [other[name] for name in ("value", "low", "high")] == [
                -own[name] for name in ("loss", "loss_high", "loss_low")
            ]
    assert options.query("option == 'A'")["policy"].unique().tolist() == ["best-fixed"]
    assert options.query("option == 'C'")["policy"].unique().tolist() == ["greedy"]
    scores = findings.details.tables["scores"].set_index("what")["value"]
    problem = problem_of_log(study, log)
    optimal = problem.value(make_policy("optimal", epsilon=study.epsilon).probabilities(problem))
    # What is proven is about the fitted scores.
    assert 0 < scores["least loss"] <= problem.prior @ problem.utilities.max(axis=1) - optimal + 1e-8
    given_to = findings.details.tables["examples"].groupby(["patient", "epsilon"])["probability"].sum()
    assert given_to.to_numpy() == pytest.approx(1)


def test_the_best_private_draw_is_not_chosen_by_the_estimates_that_judge_it():
    """Where all arms are alike, chance decides which policy is estimated best: that is nobody's merit."""
    names = ["exponential", "optimal", "randomized-response"]
    study, log = planted(ALIKE, policies=names, seed=0)
    findings, compared = found(study, log)
    mine = compared[(compared["group"] == "all") & compared["policy"].isin(names)].set_index(["epsilon", "policy"])
    chosen = findings.options.query("option == 'B'").set_index("epsilon")["policy"]
    assert chosen.to_dict() == mine["fitted_value"].unstack().idxmax(axis=1).to_dict()
    assert chosen.to_dict() != mine["difference"].unstack().idxmax(axis=1).to_dict()


def test_policies_that_are_asked_for_by_name_have_letters_as_far_as_there_are_letters():
    names = ("randomized-response", "uniform", "best-fixed", "randomized-features", "exponential-fitted", "exponential")
    study, log = planted(CROSSED, n_rows=300, policies=names, epsilons=(4.0,))
    findings, _ = found(study, log, named=names)
    lettered = findings.options.query("section == 'option'").set_index("option")["policy"]
    assert lettered[["A", "C"]].tolist() == ["best-fixed", "greedy"]
    own = [name for name in names if name not in {"best-fixed", lettered["B"]}]
    assert lettered[["D", "E", "F"]].tolist() == own[:3]
    assert findings.details.unplaced == tuple(own[3:])
    assert f"Also compared (comparison.csv): {own[3]}." in trial_screen(study, findings, 4.0).notes


def test_nothing_is_concluded_from_a_log_with_errors_that_no_interval_covers(crossed):
    study, log, _, compared = crossed
    doubts = LogCaveats(["Nobody of the old got the pill."])
    findings = find(study, log, problem_of_log(study, log), compared, doubts=doubts)
    assert set(findings.differences["verdict"]) == {"not shown"}
    assert findings.harmed.empty and not findings.details.tables["heterogeneity"]["signs"].any()
    assert findings.details.tables["policies"]["surely_from"].isna().all()
    screen = trial_screen(study, findings, 4.0)
    assert screen.text().startswith("Warning: Nobody of the old got the pill.\n")
    assert screen.advice == "This log cannot answer the question: see the warning."
    assert not re.search("better|worse|no difference", " ".join(line.text for line in screen.lines))


def test_the_full_screen_says_how_many_predictions_hold(crossed):
    study, _, findings, _ = crossed
    table = findings.details.tables["calibration"]
    holds = ((table["low"] <= table["predicted"]) & (table["predicted"] <= table["high"])).sum()
    (grid,) = (grid for grid in trial_screen(study, findings, 4.0).behind if grid.name == "calibration")
    assert grid.note.startswith(f"In {holds} of {len(table)} thirds") and len(grid.rows) == len(table)


# By patients, or by 300 clusters of 5 that have nothing in common.
@pytest.mark.parametrize(("n_clusters", "quantile"), [(0, norm.ppf), (300, stats.t(299).ppf)])
def test_a_group_is_harmed_only_beyond_the_interval_of_all_groups_together(n_clusters, quantile):
    study, log = planted(CROSSED, epsilon=0.5, policies=("randomized-response",))
    if n_clusters:
        log = replace(log, data=replace(log.data, clusters=np.arange(log.data.n_rows) % n_clusters))
    findings, compared = found(study, log)
    assert "least loss" not in findings.details.tables["scores"]["what"].tolist()
    own = compared.query("policy == 'randomized-response' and epsilon == 0.5 and group == 'old'")
    stretch = quantile(1 - 0.025 / 2) / quantile(0.975)
    high = own["difference"] + stretch * (own["difference_high"] - own["difference"])
    harmed = findings.harmed.query("option == 'B' and epsilon == 0.5")
    assert len(harmed) == (high < 0).sum() > 0
    most = own[high < 0].sort_values("difference").iloc[0]
    first = harmed.iloc[0]
    assert (first["group"], first["value"], first["share"]) == (
        f"old {most['level']}",
        -most["difference"],
        most["share"],
    )
    assert first["low"] == pytest.approx(-high[most.name])
    line = next(line.text for line in trial_screen(study, findings, 0.5).lines if line.label == "Who is harmed")
    assert f"the group “{first['group']}”" in line


def test_the_difference_of_means_is_newcombes():
    # His table II, case (a): 56 of 70 and 48 of 80, by Wilson's intervals.
    ends = [binomtest(*each).proportion_ci(method="wilson") for each in ((56, 70), (48, 80))]
    one, other = ((mean, *map(float, pair)) for mean, pair in zip((0.8, 0.6), ends, strict=True))
    assert difference_of_means(one, other) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)


@pytest.fixture(scope="module")
def compared_once():
    """A comparison of each private policy, whose numbers other logs may have."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial_columns, "REPEATS", 1)
        tables = {}
        for policy in ("exponential", "randomized-response", "best-fixed"):
            trial = make_trial(120, 0.2, 1, policies=(policy,), epsilons=(1.0, 5.0), epsilon=5.0, by=("old",))
            names = tuple(dict.fromkeys(("greedy", "best-fixed", "uniform", "exponential", policy)))
            problem = problem_of_log(trial.study, trial.log)
            tables[policy] = trial, problem, compare_log(replace(trial.study, policies=names), trial.log)
        return tables


def of_random_log(trial, compared, rng, effect):
    """Another log, and a comparison with other numbers: any differences with intervals, some of them exactly 0."""
    data = trial.log.data
    means = rng.uniform(0.5 - effect, 0.5 + effect, data.n_actions)
    rewards = (rng.random(data.n_rows) < means[data.actions]).astype(float)
    compared = compared.copy()
    for name in ("difference", "loss"):
        value, reach = rng.normal(0, effect, len(compared)), rng.exponential(0.1, len(compared))
        same = (compared["policy"] == "best-fixed") | (rng.random(len(compared)) < 0.1)
        for end, numbers in (("", value), ("_low", value - reach), ("_high", value + reach)):
            compared[f"{name}{end}"] = np.where(same, 0.0, numbers)
    return replace(trial.log, data=replace(data, rewards=rewards), outcomes={"success": rewards}), compared


def numbers_in(text):
    """The signed numbers of a text."""
    return [float(number) for number in re.findall(r"[-+]?\d+(?:\.\d+)?", text.replace("−", "-").replace("≈ 0", "0"))]


@settings(max_examples=20)
@given(
    st.integers(0, 10_000),
    st.sampled_from([0.01, 0.1, 0.5]),
    st.sampled_from(["exponential", "randomized-response", "best-fixed"]),
)
def test_each_line_is_true_of_the_tables_of_random_logs(compared_once, seed, effect, policy):
    trial, problem, compared = compared_once[policy]
    log, compared = of_random_log(trial, compared, np.random.default_rng(seed), effect)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(evidence, "LOOKS", (1,))
        findings = find(trial.study, log, problem, compared, doubts=SOUND)
    for epsilon in trial.study.epsilons:
        screen = trial_screen(trial.study, findings, epsilon)
        lines = {line.label: line.text for line in screen.lines}
        everyone = compared[(compared["group"] == "all") & (compared["epsilon"] == epsilon)].set_index("policy")
        private = row_of(findings.options, section="option", option="B", epsilon=epsilon)
        check_difference(lines["Choosing for each"], everyone.loc["greedy"])
        check_difference(lines["Drawn privately"], everyone.loc[private["policy"]])
        assert screen.advice.startswith("Choose B") == lines["Drawn privately"].endswith("B is better.")
        check_arms(lines["Best single arm"], findings.details.tables["arms"].set_index("arm"))
        assert lines["What leaks"].startswith("Nothing") == (private["hides"] == "everything")
        if private["hides"] != "everything":
            told_apart, _, toss = numbers_in(lines["What leaks"])
            assert toss == 50 and told_apart == pytest.approx(100 * private["told_apart"], abs=0.1)
        harmed = findings.harmed[(findings.harmed["epsilon"] == epsilon) & (findings.harmed["option"] == "B")]
        assert lines["Who is harmed"].startswith("By B instead of A the group") == (not harmed.empty)
        assert (harmed["low"] > 0).all()
        text = screen.text().splitlines()
        assert max(map(len, text)) <= 100 and len(text) <= 45


def check_difference(line, row):
    """A line on a difference from A is true of its row of the comparison."""
    ends = row[["difference", "difference_low", "difference_high"]].to_numpy(float)
    _, low, high = ends
    assert ("is better" in line) == (low > 0)
    assert ("is worse" in line) == (high < 0)
    assert ("the data show no difference" in line) == (low <= 0 <= high and (low, high) != (0, 0))
    if (low, high) != (0, 0):
        value, *_, first, last = numbers_in(line.partition(": ")[2])
        assert np.abs(np.array([value, first, last]) - 100 * ends).max() <= 0.5


def check_arms(line, arms):
    """An arm is called the best only where Newcombe's interval of its difference from each other is above 0."""
    best = arms["mean"].idxmax()
    mean, low = arms.loc[best, ["mean", "low"]]
    others = arms.drop(best)
    reach = np.hypot(mean - low, others["high"] - others["mean"])
    apart = mean - others["mean"]
    assert ("more than every other arm" in line) == (apart > reach).all()
    if not (apart > reach).all():
        equal, _, worse = line.partition(" have ")
        # Of three arms that are equal, two differ by 2.39 errors or one leads by 1.96 in 5 %.
        beyond = apart > 2.39 / 1.96 * reach
        sure = (apart - 2.39 / 1.96 * reach).abs() > 0.01 * reach
        assert [arm for arm in others.index[sure] if f"“{arm}”" in worse] == list(others.index[beyond & sure])
        assert f"“{best}”" in equal
