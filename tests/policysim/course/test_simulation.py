"""Simulated patients against exact values, through the vector environment."""

import json
from dataclasses import replace

import numpy as np
import pytest
from small_studies import SCENARIO, STUDY, write_small_study

import policysim as ps
from policies import make_policy
from policysim.cli.main import main
from policysim.course.planning import policy_value
from policysim.course.simulation import BATCH, simulate
from policysim.course.step_problems import optimal_course
from policysim.course.treatment_course import build_course
from policysim.question.protocol import Progress
from policysim.study.checks import Agreement

WITH_ONSET = SCENARIO.replace("[treatments.none]", "[onset]\nfever = 0.5\ncough = 0.3\n\n[treatments.none]")


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    study = STUDY + "\n[utility]\nweights = { cough = 0.7 }\ncosts = { pill = 0.2 }\n"
    return write_small_study(tmp_path_factory.mktemp("simulation"), study=study, scenario=WITH_ONSET)


@pytest.mark.parametrize(("name", "days"), [("exponential", 7), ("greedy", 3), ("uniform", 3)])
def test_many_patients_have_the_exact_value_of_several_days(covid, name, days):
    policy = make_policy(name, epsilon=1.0)
    process = build_course(covid, days)
    course = optimal_course(process)
    tables = [day.tables(policy)[1] for day in course.decisions(policy)]
    found = simulate(covid, tables, patients=200_000, exact=policy_value(process, tables), seed=5)
    # Four standard errors: once in 16,000 for a right program, and the seed is fixed.
    assert found.errors_apart <= 4
    # The check can fail: an exact value that is off by a tenth is seen.
    wrong = replace(found, exact=found.exact * 1.4)
    assert not wrong.agrees


@pytest.mark.parametrize("name", ["greedy", "exponential", "uniform"])
def test_a_million_patients_have_the_exact_value_of_one_decision(covid, covid_problem, name):
    table = make_policy(name, epsilon=1.0).probabilities(covid_problem)
    found = simulate(covid, [table], patients=1_000_000, exact=covid_problem.value(table), seed=6)
    assert found.errors_apart <= 4


def test_the_studys_own_scenario_and_utility_are_simulated(path):
    study = ps.load_study(path)
    process = build_course(study, 3)
    policy = make_policy("exponential", epsilon=2.0)
    tables = [day.tables(policy)[1] for day in optimal_course(process).decisions(policy)]
    exact = policy_value(process, tables)
    done = []
    found = simulate(study, tables, patients=BATCH + 1000, exact=exact, seed=1, progress=Progress(done.append))
    assert done == [BATCH, 1000]
    assert found.errors_apart <= 4
    default = ps.load_study(write_small_study(path.parent / "default", scenario=WITH_ONSET))
    assert abs(policy_value(build_course(default, 3), tables) - exact) > 10 * found.standard_error
    again = simulate(study, tables, patients=BATCH + 1000, exact=exact, seed=1)
    assert again == found
    assert simulate(study, tables, patients=1000, exact=exact, seed=2).mean != found.mean


def test_the_interval_and_the_distance_are_those_of_the_normal_distribution():
    found = Agreement(patients=100, mean=1.0, standard_error=0.5, exact=2.0, spread=1.0)
    assert found.interval == pytest.approx((0.02, 1.98), abs=1e-3)
    assert found.errors_apart == 2 and found.agrees
    assert not Agreement(100, 1.0, 0.5, 4.0, 1.0).agrees
    assert Agreement(100, 1.0, 0.0, 1.0, 1.0).agrees
    # Nothing rarer than 15 in 100 can be missed, and it moves the mean by at most 0.15 times the spread.
    assert Agreement(100, 1.0, 0.0, 1.1, 1.0).agrees
    assert not Agreement(100, 1.0, 0.0, 1.2, 1.0).agrees


def test_few_patients_who_show_no_death_are_no_disagreement(covid, covid_problem):
    """The planted mistake: a verdict by the sample's own error alone, which knows nothing of deaths not drawn."""
    table = make_policy("greedy").probabilities(covid_problem)
    exact = covid_problem.value(table)
    runs = [simulate(covid, [table], patients=100, exact=exact, seed=seed) for seed in range(30)]
    assert all(run.agrees for run in runs)
    assert sum(run.errors_apart > 5 for run in runs) > 10


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


def test_over_several_days_the_optimum_of_each_day_has_its_own_name(capsys, path):
    over_days = ("simulate", str(path), "--patients", "2000", "--horizon", "2", "--policy")
    code, out, err = run(capsys, *over_days, "optimal-daily")
    assert (code, err) == (0, "") and "2 days, optimal-daily at ε = 1 a day." in out
    code, same, err = run(capsys, *over_days, "optimal")
    assert code == 0 and same == out and "is called optimal-daily" in err and err.count("\n") == 1
    code, one, err = run(capsys, "simulate", str(path), "--patients", "2000", "--policy", "optimal")
    assert (code, err) == (0, "") and "1 day, optimal at ε = 1 a day." in one


def test_one_choice_of_a_schedule_is_simulated(capsys, path):
    arguments = (
        "simulate",
        str(path),
        "--patients",
        "20000",
        "--horizon",
        "3",
        "--policy",
        "plan-once",
        "--epsilon",
        "2",
    )
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    assert "20,000 simulated patients, 3 days, plan-once at ε = 2 in all." in out and "they agree" in out
    document = json.loads(run(capsys, *arguments, "--json")[1])
    assert document["policy"] == "plan-once"
    course = ps.build_course(ps.load_study(path), 3)
    assert document["exact"] == pytest.approx(ps.plan_once(course, epsilon=2.0).value, abs=1e-12)


def test_a_schedule_is_kept_to_the_end(path):
    """A planted bug: a schedule that is drawn anew each day has another value, and is found out."""
    study = ps.load_study(path)
    course = ps.build_course(study, 3)
    plan = ps.plan_once(course, epsilon=1.0, policy="randomized-response", schedules=[[0, 1, 2], [2, 0, 0]])
    assert simulate(study, plan, patients=100_000, exact=plan.value, seed=3).agrees
    given = np.eye(3)[plan.schedules]  # (m, H, k)
    anew = [plan.probabilities @ given[:, day] for day in range(3)]
    found = simulate(study, anew, patients=100_000, exact=ps.policy_value(course, anew), seed=3)
    assert found.agrees and found.exact != pytest.approx(plan.value, abs=1e-4)


def test_a_value_that_is_wrong_is_exit_code_four(capsys, path, monkeypatch):
    monkeypatch.setattr("policysim.course.simulation_question.policy_value", lambda *_: 0.0)
    code, out, _ = run(capsys, "simulate", str(path), "--patients", "20000", "--horizon", "2")
    assert code == 4
    assert "DISAGREE" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--patients", "1"), "--patients must be a whole number from 2 to 1000000000, got '1'"),
        (("--patients", "many"), "--patients must be a whole number from 2 to 1000000000, got 'many'"),
        (("--horizon", "0"), "--horizon must be a whole number from 1 to 366, got '0'"),
        (("--policy", "exponental"), "unknown policy 'exponental'; did you mean 'exponential'?"),
        (("--epsilon", "1,2"), "--epsilon must be one number >= 0, got '1,2'"),
        (("--epsilon", "-1"), "--epsilon must be one number >= 0, got '-1'"),
        (("--horizon", "2", "--sensitive", "age"), "over days what is public must never change, and infected, fever"),
        (("--length-public",), "--length-public only goes with a --horizon of several days"),
        (("--policy", "plan-once"), "--policy plan-once only goes with a --horizon of several days"),
    ],
)
def test_a_wrong_question_is_one_line(capsys, path, arguments, message):
    code, out, err = run(capsys, "simulate", str(path), *arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"policysim: {message}") and err.count("\n") == 1
