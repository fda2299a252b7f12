"""Simulated patients, as counts, against exact values and against single patients of the vector environment."""

import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from single_patients import single_patients
from small_studies import DEPENDENT, SCENARIO, STUDY, write_small_study

import policysim as ps
from envs.crowd_days import CountedDays
from policies import make_policy
from policysim.cli.main import main
from policysim.course.planning import optimal_course, policy_value
from policysim.course.simulation import simulate
from policysim.course.treatment_course import build_course
from policysim.question.protocol import Progress
from policysim.study.checks import Agreement

WITH_ONSET = SCENARIO.replace("[treatments.none]", "[onset]\nfever = 0.5\ncough = 0.3\n\n[treatments.none]")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    study = STUDY + "\n[utility]\nweights = { cough = 0.7 }\ncosts = { pill = 0.2 }\n"
    return write_small_study(tmp_path_factory.mktemp("simulation"), study=study, scenario=WITH_ONSET)


def test_a_billion_patients_have_the_exact_value_of_several_days(covid):
    policy = make_policy("exponential", epsilon=1.0)
    process = build_course(covid, 2)
    course = optimal_course(process)
    tables = [day.tables(policy)[1] for day in course.decisions(policy)]
    found = simulate(covid, tables, patients=10**9, exact=policy_value(process, tables), seed=5).agreement
    # Four standard errors: once in 16,000 for a right program, and the seed is fixed.
    assert found.errors_apart <= 4
    # The check can fail, and of a billion it is sharp: an exact value that is off by a two-hundredth is seen.
    wrong = replace(found, exact=found.exact * 1.005)
    assert not wrong.agrees


def test_a_billion_patients_have_the_exact_value_of_one_decision(covid, covid_problem):
    table = make_policy("exponential", epsilon=1.0).probabilities(covid_problem)
    found = simulate(covid, [table], patients=10**9, exact=covid_problem.value(table), seed=6)
    assert found.agreement.errors_apart <= 4
    assert sum(found.treatments.values()) == found.agreement.patients == 10**9
    assert list(found.treatments) == list(covid.scenario.actions)
    deaths = 10**9 * (covid_problem.prior[:, None] * table * covid_problem.outcomes["deaths"]).sum()
    # Poisson's variance is larger than that of deaths among so many.
    assert abs(found.outcomes["death"] - deaths) <= 5 * np.sqrt(deaths)


def test_the_studys_own_scenario_and_utility_are_simulated(path):
    study = ps.load_study(path)
    process = build_course(study, 3)
    policy = make_policy("exponential", epsilon=2.0)
    tables = [day.tables(policy)[1] for day in optimal_course(process).decisions(policy)]
    exact = policy_value(process, tables)
    done = []
    found = simulate(study, tables, patients=10**5, exact=exact, seed=1, progress=Progress(done.append))
    assert done == [1, 1, 1]
    assert found.agreement.errors_apart <= 4
    default = ps.load_study(write_small_study(path.parent / "default", scenario=WITH_ONSET))
    assert abs(policy_value(build_course(default, 3), tables) - exact) > 10 * found.agreement.standard_error
    again = simulate(study, tables, patients=10**5, exact=exact, seed=1)
    assert again == found
    assert simulate(study, tables, patients=1000, exact=exact, seed=2).agreement.mean != found.agreement.mean


# Counts against rows.

ROWS = 200_000
OWN = {
    "dependent": (DEPENDENT, STUDY),
    "onset": (WITH_ONSET, STUDY),
    "public": (WITH_ONSET, STUDY.replace('adjacency = "any-record"', 'public = ["age"]')),
}


@pytest.mark.parametrize("way", ["daily", "once"])
@pytest.mark.parametrize("kind", OWN)
def test_counts_are_as_those_of_single_patients(tmp_path, kind, way):
    """Each count, mean and variance within five standard errors, which the single patients have."""
    scenario, text = OWN[kind]
    study = ps.load_study(write_small_study(tmp_path, study=text, scenario=scenario))
    process = build_course(study, 3)
    policy = make_policy("exponential", epsilon=3.0)
    if way == "once":
        plan = ps.plan_once(process, epsilon=3.0, policy=policy)
        exact = plan.value
    else:
        plan = [day.tables(policy)[1] for day in optimal_course(process).decisions(policy)]
        exact = policy_value(process, plan)
    counted = simulate(study, plan, patients=10**8, exact=exact, seed=4)
    rows = single_patients(study, plan, ROWS, seed=5)
    found = counted.agreement
    assert found.errors_apart <= 5
    assert abs(rows.returns.mean() - found.mean) <= 5 * rows.returns.std() / np.sqrt(ROWS)
    variance = found.standard_error**2 * found.patients
    squares = (rows.returns - rows.returns.mean()) ** 2
    assert abs(squares.mean() - variance) <= 5 * squares.std() / np.sqrt(ROWS)
    pairs = ((counted.treatments, rows.given), (counted.outcomes, rows.happened))
    for counts, each in pairs:
        shares = np.array(list(counts.values())) / found.patients
        assert (np.abs(each.mean(axis=0) - shares) <= 5 * each.std(axis=0) / np.sqrt(ROWS) + 1e-4).all()


def test_the_interval_and_the_distance_are_those_of_the_normal_distribution():
    found = Agreement(patients=100, mean=1.0, standard_error=0.5, exact=2.0, spread=1.0)
    assert found.interval == pytest.approx((0.02, 1.98), abs=1e-3)
    assert found.errors_apart == 2 and found.agrees
    assert not Agreement(100, 1.0, 0.5, 4.0, 1.0).agrees
    assert Agreement(100, 1.0, 0.0, 1.0, 1.0).agrees
    # Nothing rarer than 15 in 100 can be missed, and it moves the mean by at most 0.15 times the spread.
    assert Agreement(100, 1.0, 0.0, 1.1, 1.0).agrees
    assert not Agreement(100, 1.0, 0.0, 1.2, 1.0).agrees


def test_few_patients_who_show_no_death_are_no_disagreement(path):
    """The planted mistake: a verdict by the sample's own error alone, which knows nothing of deaths not drawn."""
    study = ps.load_study(path)
    problem = ps.build_problem(study)
    table = make_policy("best-fixed").probabilities(problem)
    exact = problem.value(table)
    runs = [simulate(study, [table], patients=6, exact=exact, seed=seed).agreement for seed in range(60)]
    assert all(run.agrees for run in runs)
    assert sum(run.errors_apart > 5 for run in runs) > 3


def test_one_patient_has_no_standard_error(path):
    with pytest.raises(ValueError, match="patients must be >= 2"):
        simulate(ps.load_study(path), [np.full((32, 3), 1 / 3)], patients=1, exact=0.0, seed=0)


def run(capsys, *arguments):
    code = main(arguments)
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_the_command_says_that_they_agree(capsys, path):
    arguments = ("simulate", str(path), "--patients", "20000", "--horizon", "2", "--epsilon", "1", "--seed", "9")
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    assert "20,000 simulated patients, 2 days, exponential at ε = 1 a day." in out and "they agree" in out
    document = json.loads(run(capsys, *arguments, "--json")[1])
    assert document["agrees"] and document["horizon"] == 2 and document["seed"] == 9
    assert document["interval"][0] < document["mean"] < document["interval"][1]
    # Everybody is treated on the first day, and nobody dies twice.
    assert 20_000 <= sum(document["treatments"].values()) <= 40_000
    assert 0 < document["outcomes"]["death"] < 20_000
    assert f"death {document['outcomes']['death']:,}" in " ".join(out.split())


@pytest.mark.parametrize("patients", ["1000000000", "1_000e6"])
def test_a_billion_can_be_said_in_several_ways(capsys, path, patients):
    code, out, err = run(capsys, "simulate", str(path), "--patients", patients, "--policy", "uniform")
    assert (code, err) == (0, "") and "1,000,000,000 simulated patients, 1 day, uniform." in out


def test_more_patients_show_more_digits(capsys, path):
    for patients, least in ((1_000, 6), (10**12, 7)):
        arguments = ("simulate", str(path), "--patients", str(patients), "--epsilon", "1")
        out, document = run(capsys, *arguments)[1], json.loads(run(capsys, *arguments, "--json")[1])
        assert f"{patients:,} simulated patients, 1 day, exponential at ε = 1.\n" in out
        (shown,) = [line for line in out.splitlines() if line.startswith("Mean")]
        numbers = re.findall(r"-?\d+\.(\d+)", shown)
        assert {len(decimals) for decimals in numbers} == {least}
        # The ends of the interval are apart, to two digits.
        assert float(f"{document['standard_error']:.{least}f}") >= 10 * 10.0**-least


def test_over_several_days_the_optimum_of_each_day_has_its_own_name(capsys, path):
    over_days = ("simulate", str(path), "--patients", "2000", "--horizon", "2", "--policy")
    code, out, err = run(capsys, *over_days, "optimal-daily")
    assert (code, err) == (0, "") and "2 days, optimal-daily at ε = 1 a day." in out
    code, same, err = run(capsys, *over_days, "optimal")
    assert (code, err) == (0, "") and same == out
    code, one, err = run(capsys, "simulate", str(path), "--patients", "2000", "--policy", "optimal")
    assert (code, err) == (0, "") and "1 day, optimal at ε = 1.\n" in one


@pytest.mark.parametrize(("way", "plan"), [("plan-once", ps.plan_once), ("plan-tree", ps.plan_tree)])
def test_a_plan_of_the_whole_course_is_simulated(capsys, path, way, plan):
    arguments = (
        "simulate",
        str(path),
        "--patients",
        "20000",
        "--horizon",
        "2",
        "--policy",
        way,
        "--epsilon",
        "2",
    )
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    assert f"20,000 simulated patients, 2 days, {way} at ε = 2 in all." in out and "they agree" in out
    document = json.loads(run(capsys, *arguments, "--json")[1])
    assert document["policy"] == way
    course = ps.build_course(ps.load_study(path), 2)
    assert document["exact"] == pytest.approx(plan(course, epsilon=2.0).value, abs=1e-12)


@pytest.mark.parametrize("kind", ["onset", "public"])
def test_a_hundred_million_patients_have_the_exact_value_of_a_tree_of_courses(tmp_path, kind):
    scenario, text = OWN[kind]
    study = ps.load_study(write_small_study(tmp_path, study=text, scenario=scenario))
    course = ps.build_course(study, 3)
    plan = ps.plan_tree(course, epsilon=6.0)
    assert plan.value > ps.plan_once(course, epsilon=6.0).value + 1e-4
    found = simulate(study, plan, patients=10**8, exact=plan.value, seed=8)
    assert found.agreement.errors_apart <= 4
    assert not replace(found.agreement, exact=plan.value * 1.005).agrees
    assert sum(found.treatments.values()) >= 10**8


def test_a_schedule_is_kept_to_the_end(path):
    """A planted bug: a schedule that is drawn anew each day has another value, and is found out."""
    study = ps.load_study(path)
    course = ps.build_course(study, 3)
    plan = ps.plan_once(course, epsilon=1.0, policy="randomized-response", schedules=[[0, 1, 2], [2, 0, 0]])
    assert simulate(study, plan, patients=10**8, exact=plan.value, seed=3).agreement.agrees
    given = np.eye(3)[plan.schedules]  # (m, H, k)
    anew = [plan.probabilities @ given[:, day] for day in range(3)]
    found = simulate(study, anew, patients=10**8, exact=ps.policy_value(course, anew), seed=3).agreement
    assert found.agrees and found.exact != pytest.approx(plan.value, abs=1e-4)
    assert not replace(found, exact=plan.value).agrees


def test_schedules_that_agree_from_a_day_on_are_followed_together(path, monkeypatch):
    """Of three schedules, two agree after the first day: then there are two crowds, not three."""
    study = ps.load_study(path)
    plan = ps.plan_once(ps.build_course(study, 3), epsilon=1.0, schedules=[[0, 1, 2], [2, 1, 2], [1, 0, 0]])
    crowds, treat = [], CountedDays.day
    monkeypatch.setattr(CountedDays, "day", lambda *given, **named: crowds.append(1) or treat(*given, **named))
    found = simulate(study, plan, patients=10**8, exact=plan.value, seed=3)
    assert len(crowds) == 3 + 2 + 2 and found.agreement.agrees


def test_a_value_that_is_wrong_is_exit_code_four(capsys, path, monkeypatch):
    monkeypatch.setattr("policysim.course.simulation.policy_value", lambda *_: 0.0)
    code, out, _ = run(capsys, "simulate", str(path), "--patients", "20000", "--horizon", "2")
    assert code == 4
    assert "DISAGREE" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(
            (("--patients", wrong), f"--patients must be a whole number from 2 to 1,000,000,000,000, got '{wrong}'")
            for wrong in ("0", "1", "1.5", "1e30", "1e13", "-5", "nan", "inf", "many", "1_00", "1__000", "_1", "1e-9")
        ),
        (("--horizon", "0"), "--horizon must be a whole number from 1 to 366, got '0'"),
        (("--policy", "exponental"), "unknown policy 'exponental'; did you mean 'exponential'?"),
        (("--epsilon", "1,2"), "--epsilon must be one number >= 0, got '1,2'"),
        (("--epsilon", "-1"), "--epsilon must be one number >= 0, got '-1'"),
        (("--horizon", "2", "--sensitive", "age"), "over days what is public must never change, and infected, fever"),
        (("--length-public",), "--length-public only goes with a --horizon of several days"),
        (("--policy", "plan-tree"), "--policy plan-tree only goes with a --horizon of several days"),
        (("--policy", "plan-once"), "--policy plan-once only goes with a --horizon of several days"),
    ],
)
def test_a_wrong_question_is_one_line(capsys, path, arguments, message):
    code, out, err = run(capsys, "simulate", str(path), *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"policysim: {message}") and err.count("\n") == 1


def test_a_warning_is_one_line_on_the_command_line(capsys, tmp_path):
    scenario = """
title = "All begin alike"
features = { ill = {}, fever = {} }
rules = [{ set = { ill = 1.0 } }]
natural_clearing = { ill = 0.3, fever = 0.3 }
weights = { ill = 1, fever = 1, death = 1 }
[treatments.nothing]
[treatments.drug]
clears = { ill = 0.5 }
"""
    (tmp_path / "scenario.toml").write_text(scenario, encoding="utf-8")
    (tmp_path / "study.toml").write_text('scenario = "scenario.toml"\n', encoding="utf-8")
    arguments = ["simulate", str(tmp_path / "study.toml"), "--patients", "100", "--horizon", "2"]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert main([*arguments, "--policy", "plan-once"]) == 0
    err = capsys.readouterr().err
    assert err.startswith("policysim: warning: plan_once cannot react here: ")
    assert err.count("\n") == 1
