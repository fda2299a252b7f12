"""Exact values of the patients whom `reset(options={"where": ...})` of the environment draws."""

import re
import shutil
from itertools import product

import numpy as np
import pytest
from small_processes import expected_by_paths, random_table
from small_trials import OF_EXAMPLE

import policysim as ps
from envs.cohort import prior
from policysim.cli.main import main

DAYS = 2
WHERE = {"fever": 1, "age": ["old", "young"], "smoker": [0]}


def conditioned(scenario):
    """P(record | fever, no smoker), record by record."""
    space, chances = scenario.space, prior(scenario)
    for record, codes in enumerate(product(*(range(length) for length in space.shape))):
        level = dict(zip(space.names, codes, strict=True))
        chances[record] *= level["fever"] == 1 and level["smoker"] == 0
    return chances / chances.sum()


def test_a_decision_is_worth_what_it_is_to_those_who_meet_the_condition(study):
    problem, everybody = ps.build_problem(study, where=WHERE), ps.build_problem(study)
    chances = conditioned(study.scenario)
    assert problem.prior == pytest.approx(chances, abs=1e-15)
    assert np.array_equal(problem.utilities, everybody.utilities)
    table = ps.compare(problem, policies=["greedy", "best-fixed", "exponential"], epsilons=[1.0]).set_index("policy")
    best, fixed = chances @ problem.utilities.max(axis=1), (chances @ problem.utilities).max()
    assert table.loc["greedy", "value"] == pytest.approx(best)
    kept = (table.loc["exponential", "value"] - fixed) / (best - fixed)
    assert table.loc["exponential", "benefit_kept"] == pytest.approx(kept)


@pytest.mark.parametrize("length_public", [True, False])
def test_a_course_is_worth_what_every_path_of_those_who_meet_it_is(study, length_public):
    course = ps.build_course(study, DAYS, length_public=length_public, where=WHERE)
    n, k = course.rewards.shape
    moves = np.stack([course.continuation(unit) for unit in np.eye(n)], axis=2)
    daily = [random_table(np.random.default_rng(day), n, k) for day in range(DAYS)]
    chances = conditioned(study.scenario)
    value = sum(
        chance * expected_by_paths(moves, course.rewards, daily, record)
        for record, chance in enumerate(chances)
        if chance > 0
    )
    assert ps.policy_value(course, daily) == pytest.approx(value, rel=1e-12)


def test_a_class_that_nobody_is_in_changes_nothing_for_the_others(study):
    course = ps.build_course(study, DAYS, where={"age": "old", "fever": 1}).with_public(["age"])
    alone = ps.build_course(study, DAYS, where={"age": ["old"], "fever": [1]})
    for name in ("greedy", "randomized-response"):
        known, hidden = (ps.compare(each, policies=[name], epsilons=[1.0])["value"].item() for each in (course, alone))
        assert known == pytest.approx(hidden, rel=1e-12)
    assert ps.plan_once(course, epsilon=1.0).value == pytest.approx(ps.plan_once(alone, epsilon=1.0).value)


def test_most_of_covids_stays_last_one_day_as_the_docs_say():
    course = ps.build_course(ps.load_study("covid"), 14, length_public=True).merged()
    n, k = course.rewards.shape
    ill = prior(ps.load_scenario("covid"), {"covid_positive": 1, "fever": 1, "age": ["60-79", "80+"]})
    who = np.bincount(course.first_records.state, weights=ill, minlength=n)
    best, none = np.eye(k)[ps.plan(course).actions[0]], np.eye(1, k).repeat(n, axis=0)
    starts = [(course.initial, best), (course.initial, none), (who, best)]
    shares = [1 - course.push(start, given).sum() for start, given in starts]
    assert [f"{share:.0%}" for share in shares] == ["92%", "86%", "31%"]


@pytest.mark.parametrize(
    ("where", "message"),
    [
        ({"fewer": 1}, "unknown feature 'fewer'"),
        ({"age": ["60"]}, "age must be one of ['young', 'old'], got '60'."),
        ("fever", "where must map features to levels, got where='fever'."),
        ({"fever": []}, "where must be met by somebody, got where={'fever': []}."),
    ],
)
def test_a_condition_that_makes_no_patients_is_refused(study, where, message):
    for build in (ps.build_problem, lambda study, where: ps.build_course(study, 2, where=where)):
        with pytest.raises(ValueError, match=re.escape(message)):
            build(study, where=where)


def test_a_condition_is_for_the_patients_of_a_scenario(tmp_path):
    trial = shutil.copy("examples/trial.csv", tmp_path)
    assert main(["init", str(trial), "--out", str(tmp_path / "trial.toml"), *OF_EXAMPLE]) == 0
    with pytest.raises(ValueError, match=r"where conditions the patients of a scenario.*got where=\{'fever': 1\}"):
        ps.build_problem(ps.load_study(str(tmp_path / "trial.toml")), where={"fever": 1})
