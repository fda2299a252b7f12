"""Treatment over days within a budget: what is published in all days together, by enumeration, and what is printed."""

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from counted_progress import CountedProgress
from small_processes import published, replayed, worst_divergence
from small_studies import DEPENDENT, SCENARIO, STUDY, WITH_ONSET, write_small_study

import policysim as ps
from policies import make_policy
from policies.optimal.optimum import OPTIMAL_DAILY as DAILY
from policies.optimal.optimum import daily_name
from policysim.cli.main import main
from policysim.course.course_evaluation import ProcessEvaluator
from policysim.course.days import compare_days, ways
from policysim.course.days_report import report
from policysim.course.planning import optimal_course, policy_value
from policysim.course.private_planner import PrivatePlanner
from policysim.course.schedules import Schedules, best_of_all
from policysim.course.treatment_course import build_course
from policysim.errors import UsageError
from policysim.utility import Utility
from policysim.words import BEST_SCHEDULE as SCHEDULE


def tables_of(process, policy):
    return [day.tables(policy)[1] for day in optimal_course(process).decisions(policy)]


def test_a_length_that_is_hidden_costs_what_a_public_one_does_not(study):
    """The planted mistake: to stop publishing for patients who have recovered, but to call the length hidden."""
    process = build_course(study, 3, length_public=True)
    joint = published(process, tables_of(process, make_policy("exponential", epsilon=0.5)))
    # Fewer than three actions are published for those whose stay ends; that alone tells records apart.
    ended = 1 - joint.sum(axis=1)
    assert ended.max() > 0.1
    assert np.log(ended.max() / ended.min()) > 3 * 0.5


def planned(study, horizon, name, totals, delta=0.0):
    """What is compared at each total: the course found, and its tables for every record, from its policies and priors.

    States that records share are told apart again: the tables are checked on the course of all records.
    """
    merged = build_course(study, horizon).merged()
    evaluator = ProcessEvaluator(merged, optimal_course(merged))
    planner = PrivatePlanner(evaluator, best_of_all(Schedules.of(merged, held=1)))
    for found in planner.within(make_policy(name), totals, delta):
        yield found, [table[merged.first_records.state] for table in replayed(merged, found)[0]]


TOTALS, NAMES = (0.5, 1.0, 4.0), ("exponential", "exponential-fitted", "randomized-response", "optimal")


@pytest.fixture(scope="module", params=[0.0, 1e-2])
def compared(request, study):
    """A delta, and what is compared over days at it."""
    delta, progress = request.param, CountedProgress()
    study = replace(study, policies=("greedy", "uniform", *NAMES))
    table = compare_days(study, horizon=3, totals=TOTALS, delta=delta, progress=progress)["comparison"]
    assert progress.done == progress.expected > 0
    assert tuple(table["horizon"].unique()) == (1, 2, 3)
    return delta, table


def test_the_value_and_the_limit_at_a_total_do_not_depend_on_other_totals():
    """On the ward one choice at a total of 5 kept 56 % beside no other total, and 71 % beside 1.

    And the limit was that of two days where 5 alone was asked for, and that of one beside 1.
    """
    path = Path(ps.__file__).parents[1] / "examples" / "ward" / "study.toml"
    ward = replace(ps.load_study(path), policies=("greedy", "optimal"))
    alone, beside = (
        compare_days(ward, horizon=3, totals=totals)["comparison"].set_index(["policy", "total_epsilon", "horizon"])
        for totals in ((5.0,), (1.0, 5.0))
    )
    everyone = [table[table["group"] == "all"] for table in (alone, beside)]
    own, same = (table.xs(5.0, level="total_epsilon") for table in everyone)
    columns = ["value", "unbeatable", "most_kept", "most_kept_hides", "most_kept_proof"]
    pd.testing.assert_frame_equal(own[columns], same[columns], check_exact=True)
    limits = everyone[1].xs(("greedy", 3), level=("policy", "horizon"))
    assert limits["unbeatable"].is_monotonic_increasing and (limits["unbeatable"] <= limits["value"] + 1e-12).all()
    assert set(limits["most_kept_hides"]) == {"course"}


def test_of_many_states_one_proof_over_two_days_bounds_all_totals_up_to_that_of_the_study(study, monkeypatch):
    monkeypatch.setattr("policysim.course.days.MOST_EXACT", 0)
    study = replace(study, policies=("greedy",), epsilon=1.0)
    asked = (0.5,), (0.5, 1.0, 3.0)
    alone, beside = (compare_days(study, horizon=2, totals=totals)["comparison"] for totals in asked)
    limits = beside[(beside["policy"] == "greedy") & (beside["group"] == "all") & (beside["horizon"] == 2)]
    limits = limits.set_index("total_epsilon")
    process = build_course(study, 2)
    of_days = ps.course_limit(process, 1.0, days=2, hides="course")
    of_first = {total: ps.course_limit(process, total) for total in limits.index}
    expected = [min(of_first[0.5], of_days), min(of_first[1.0], of_days), of_first[3.0]]
    assert limits["unbeatable"].tolist() == pytest.approx(expected, abs=1e-9)
    assert of_days < of_first[1.0] < of_first[3.0]
    assert set(alone.loc[alone["horizon"] == 2, "unbeatable"].dropna()) == {limits["unbeatable"][0.5]}


def test_the_table_holds_the_values_of_courses_that_stay_within_the_total(study, compared):
    delta, table = compared
    assert set(table["group"]) == {"all", "age", "infected"}
    # What each row hides, and what is bounded beside it.
    nothing = table["policy"] == "greedy"
    assert set(table.loc[nothing, "hides"]) == {"nothing"} and set(table.loc[~nothing, "hides"]) == {"course"}
    assert set(table["most_kept_hides"]) == ({"first state"} if delta else {"first state", "course"})
    closer = table["most_kept_hides"] == "course"
    assert set(table.loc[closer, "horizon"]) <= {3}
    assert set(table["most_kept_proof"]) == {"rationals"}
    overall = table[(table["group"] == "all") & (table["horizon"] == 3)]
    process = build_course(study, 3)
    spending = 0
    for name in NAMES:
        rows = overall[overall["policy"] == daily_name(name)].to_dict("records")
        for row, (found, tables) in zip(rows, planned(study, 3, name, TOTALS, delta), strict=True):
            assert row["value"] == pytest.approx(policy_value(process, tables), abs=1e-12)
            epsilons = [policy.epsilon if policy.uses_epsilon else 0.0 for policy in found.policies]
            losses = [ps.privacy_loss(each, ps.AnyRecord()).epsilon for each in tables]
            assert row["epsilon"] == max(epsilons) and row["epsilon_spent"] == pytest.approx(max(losses), abs=1e-12)
            assert row["total_spent"] <= min(row["total_epsilon"], sum(losses) + 1e-9)
            # Every sequence that may be published, from every pair of first records.
            assert worst_divergence(published(process, tables), row["total_spent"]) <= delta + 1e-12
            assert (row["continuation"], row["composition"] == "exact-losses") == ("private", delta == 0) or delta > 0
            spending += row["total_spent"] > 0.5
    assert spending >= 4
    assert (overall[overall["policy"] == "greedy"]["loss"].abs() < 1e-12).all()
    same = overall[overall["policy"] == "uniform"]
    assert same["value"].nunique() == 1 and (same["total_spent"] == 0).all()


def test_over_one_day_the_budget_is_the_epsilon_of_one_decision(study):
    names = ("exponential", "exponential-fitted", "randomized-response", "optimal")
    totals, compared = (1.0, 3.0, 10.0), replace(study, by=(), policies=("uniform", "greedy", *names))
    table = compare_days(compared, horizon=1, totals=totals, length_public=True)["comparison"]
    problem = ps.build_problem(study)
    one = ps.compare(problem, policies=["uniform", "greedy", "best-fixed"], epsilons=[1.0]).set_index("policy")
    for name in ("uniform", "greedy"):
        row = table[table["policy"] == name].iloc[0]
        assert row["value"] == pytest.approx(one.loc[name, "value"], abs=1e-12)
        assert row["benefit_kept"] == pytest.approx(one.loc[name, "benefit_kept"], abs=1e-9)
    taken = 0
    for name, total in product(names, totals):
        row = table[(table["policy"] == daily_name(name)) & (table["total_epsilon"] == total)].iloc[0]
        if row["epsilon"] == 0:
            # Nothing is spent where the same for all is worth no less.
            at_total = ps.compare(problem, policies=[name], epsilons=[total]).iloc[0]
            assert row["value"] == pytest.approx(one.loc["best-fixed", "value"], abs=1e-12)
            assert at_total["value"] <= row["value"] + 1e-12 and row["total_spent"] == 0
            continue
        same = ps.compare(problem, policies=[name], epsilons=[row["epsilon"]]).iloc[0]
        assert row["value"] == pytest.approx(same["value"], abs=1e-12)
        assert row["total_spent"] == pytest.approx(same["epsilon_spent"], rel=1e-9)
        assert 0.98 * total <= row["total_spent"] <= total
        taken += 1
        # Its formula promises more loss than its table has: so it may have a larger epsilon.
        assert row["epsilon"] == pytest.approx(total) if name != "exponential" else row["epsilon"] > 1.1 * total
    assert taken >= 4 and (table[table["policy"] == "exponential"]["epsilon"] > 0).any()


def test_a_larger_total_never_keeps_less(compared):
    table = compared[1]
    table = table[table["policy"] != "greedy"]
    assert set(table["policy"]) == {SCHEDULE, "plan-once", "plan-tree", "uniform", *NAMES[:3], DAILY}
    overall = table[table["group"] == "all"]
    schedules = overall[overall["policy"] == SCHEDULE].groupby("horizon")["value"].first()
    for (_, horizon), rows in overall.groupby(["policy", "horizon"]):
        assert rows["total_epsilon"].tolist() == list(TOTALS)
        assert (rows["value"].diff().dropna() >= 0).all()
        assert (rows["total_spent"] <= rows["total_epsilon"]).all()
        assert rows["value"].iloc[0] >= schedules[horizon] - 1e-12 or rows["policy"].iloc[0] in ("plan-once", "uniform")
        assert (rows["value"] <= rows["unbeatable"]).all()
        # What keeps within a smaller total keeps within a larger one.
        assert (rows["unbeatable"].diff().dropna() >= 0).all()
    for _, rows in ways(table).groupby(["way", "horizon"]):
        assert rows["total_epsilon"].tolist() == list(TOTALS) and (rows["value"].diff().dropna() >= 0).all()


PUBLIC = STUDY.replace('adjacency = "any-record"', 'public = ["age"]').replace(
    '"exponential", "randomized-response"]', '"randomized-response", "optimal"]'
)


@pytest.mark.parametrize("seed", range(4))
def test_outcomes_times_their_weights_are_the_value_of_each_way(tmp_path, seed):
    """Utilities are linear in what is counted: of random studies, with an event, and costs by the record."""
    rng = np.random.default_rng(seed)
    text = PUBLIC if seed % 2 else STUDY
    both = WITH_ONSET + DEPENDENT.removeprefix(SCENARIO)
    study = ps.load_study(write_small_study(tmp_path, study=text, scenario=both))
    scenario = study.scenario
    rates = [{name: rng.random() for name in scenario.transient} for _ in range(2)]
    study = replace(
        study,
        scenario=replace(scenario, natural_clearing=rates[0], onset=rates[1]),
        utility=Utility(dict(zip(scenario.outcomes, 5 * rng.random(5), strict=True)), {"syrup": rng.random()}),
        policies=("greedy", "uniform", "optimal"),
    )
    table = compare_days(study, horizon=2, totals=(4.0,), length_public=seed > 1)["comparison"]
    counted = {**study.weights, "costs": 1.0}
    everyone = table[table["group"] == "all"]
    assert {SCHEDULE, "plan-once", "plan-tree", DAILY} < set(everyone["policy"])
    weighed = sum(weight * everyone[f"expected_{name}"] for name, weight in counted.items())
    assert np.abs(weighed + everyone["value"]).max() <= 1e-9
    # Each of them is there, and moves; a patient has a symptom on two days at most.
    assert all(np.ptp(everyone[f"expected_{name}"]) > 1e-6 for name in counted)
    assert everyone[[f"expected_{name}" for name in scenario.transient]].max(axis=None) <= 2
    # As in one decision, groups have what leads and what happens at a rate.
    groups = table[table["group"] != "all"]
    assert groups["expected_fever"].isna().all() and groups["expected_death"].notna().all()


def run(capsys, *arguments):
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_horizon_that_memory_cannot_hold_says_how_much(capsys, path, monkeypatch):
    monkeypatch.setattr("policysim.course.process.memory", lambda: 20_000.0)
    code, out, err = run(capsys, "simulate", str(path), "--horizon", "300")
    assert (code, out) == (2, "") and err.count("\n") == 1
    assert err.startswith("policysim: --horizon 300: a horizon of") and "would fit" in err
    with pytest.raises(UsageError, match=r"^--horizon 300: a horizon of .* would fit"):
        report(ps.load_study(path), horizon=300)
    with pytest.raises(ValueError, match=r"needs about 0\.0 GB for the Q-values of 33 states"):
        ps.plan(build_course(ps.load_study(path), 300))


@pytest.mark.parametrize(
    ("choices", "options", "message"),
    [
        ({"adjacency": "one-feature"}, {}, "over days one-feature does not compose"),
        ({"sensitive": ["age"]}, {}, "over days a public feature must never change, and infected, fever"),
        ({}, {"horizon": 0}, "horizon must be a whole number of days >= 1"),
        ({}, {"total_epsilons": [-1]}, "epsilon must be a number >= 0, got -1"),
        ({}, {"delta": 1.0}, "delta must be"),
        ({}, {"policies": ["optimum"]}, "unknown policy 'optimum'"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_line(study, choices, options, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        report(study.with_choices(**choices), **{"horizon": 2, **options})


FORBIDDEN = WITH_ONSET.replace("[treatments.pill]", '[treatments.pill]\ncontraindicated = [{ age = "old" }]')


def test_a_study_with_a_public_feature_and_a_mask_runs_over_days(capsys, tmp_path):
    path = write_small_study(tmp_path / "study", study=PUBLIC, scenario=FORBIDDEN)
    found = report(ps.load_study(path), horizon=2, total_epsilons=5)
    hidden = " ".join(str(found).split())
    assert "hides everything but age B" in hidden and "hides the whole course but age up to ε = 5" in hidden
    assert found.identity["public"] == ["age"]
    assert found.identity["question"]["sensitive"] == ["infected", "fever", "cough", "smoker"]
    table = found.tables["comparison"]
    # On one decision the study lists "optimal".
    assert DAILY in set(table["policy"])
    private = table[(table["group"] == "all") & ~table["policy"].isin(["greedy"])]
    assert (private["total_spent"] <= private["total_epsilon"] + 1e-12).all()
    assert (private["value"] <= private["unbeatable"]).all()
    # The daily rows are worth what their tables are, and lose no more than is claimed within a class, by enumeration.
    process = build_course(ps.load_study(path), 2)
    budget = ps.PrivacyBudget(5.0).daily(make_policy("randomized-response"), process)
    tables = tables_of(process, budget.policy)
    joint = published(process, tables)
    assert max(ps.privacy_loss(joint[process.classes == place], ps.AnyRecord()).epsilon for place in (0, 1)) <= 5 + 1e-9
    once = ps.plan_once(process, epsilon=5.0)
    row = private[(private["policy"] == "plan-once") & (private["horizon"] == 2) & (private["total_epsilon"] == 5)]
    assert row["value"].iloc[0] == pytest.approx(once.value, abs=0.02)
    for name in ("plan-once", "optimal-daily"):
        simulated = ("--policy", name, "--horizon", "2", "--patients", "4000")
        code, _, err = run(capsys, "simulate", str(path), *simulated)
        assert (code, err) == (0, "")
    # Nobody who is old ever gets the pill, no longer treated or not, by no schedule and on no day.
    old = process.classes == 1
    assert all((table[old, 2] == 0).all() for table in tables)
    assert (once.schedules[1] != 2).all() and (once.schedules[0] == 2).any()
