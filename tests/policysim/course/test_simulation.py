"""Simulated patients, drawn in batches, against exact values."""

import json
import tracemalloc
import warnings
from dataclasses import replace

import numpy as np
import pytest
from small_studies import DEPENDENT, STUDY, WITH_ONSET, write_small_study

import policysim as ps
from policies import make_policy
from policysim.cli.main import main
from policysim.course import simulation
from policysim.course.planning import optimal_course, policy_value
from policysim.course.simulation import simulate
from policysim.course.treatment_course import build_course
from policysim.study.checks import Agreement

# One simulated mean in 16,000 is further from a right exact value, and seeds are fixed.
ERRORS = 4
MANY = 200_000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    study = STUDY + "\n[utility]\nweights = { cough = 0.7 }\ncosts = { pill = 0.2 }\n"
    return write_small_study(tmp_path_factory.mktemp("simulation"), study=study, scenario=WITH_ONSET)


def test_many_patients_have_the_exact_value_of_one_decision(covid, covid_problem):
    table = make_policy("exponential", epsilon=1.0).probabilities(covid_problem)
    found = simulate(covid, [table], patients=MANY, exact=covid_problem.value(table), seed=6)
    assert found.agreement.errors_apart <= ERRORS
    # The check can fail: an exact value that is off by three tenths is seen.
    assert not replace(found.agreement, exact=found.agreement.exact * 1.3).agrees
    assert sum(found.treatments.values()) == found.agreement.patients == MANY
    assert list(found.treatments) == list(covid.scenario.actions)
    shares = (covid_problem.prior[:, None] * table).sum(axis=0)
    counts = np.array(list(found.treatments.values()))
    assert (np.abs(counts - MANY * shares) <= 5 * np.sqrt(MANY * shares * (1 - shares))).all()
    deaths = MANY * (covid_problem.prior[:, None] * table * covid_problem.outcomes["death"]).sum()
    # Poisson's variance is larger than that of deaths among so many.
    assert abs(found.outcomes["death"] - deaths) <= 5 * np.sqrt(deaths)


KINDS = {
    "dependent": (DEPENDENT, STUDY),
    "onset": (WITH_ONSET, STUDY),
    "public": (WITH_ONSET, STUDY.replace('adjacency = "any-record"', 'public = ["age"]')),
}


@pytest.mark.parametrize("way", ["daily", "plan-once"])
@pytest.mark.parametrize("kind", KINDS)
def test_patients_have_the_exact_value_of_several_days(tmp_path, kind, way):
    scenario, text = KINDS[kind]
    study = ps.load_study(write_small_study(tmp_path, study=text, scenario=scenario))
    process = build_course(study, 3)
    policy = make_policy("exponential", epsilon=3.0)
    if way == "plan-once":
        plan = ps.plan_once(process, epsilon=3.0, policy=policy)
        exact = plan.value
    else:
        plan = [day.tables(policy)[1] for day in optimal_course(process).decisions(policy)]
        exact = policy_value(process, plan)
    found = simulate(study, plan, patients=200_000, exact=exact, seed=4).agreement
    assert found.errors_apart <= ERRORS
    assert not replace(found, exact=exact * 1.06).agrees


@pytest.mark.parametrize("way", ["daily", "plan-once", "plan-tree"])
def test_a_seed_gives_the_same_patients_and_another_one_others(path, way, monkeypatch):
    monkeypatch.setattr(simulation, "BATCH", 700)  # several batches, the last one cut
    study = ps.load_study(path)
    process = build_course(study, 3)
    plans = {
        "daily": lambda: [np.full((len(process.initial), 3), 1 / 3)] * 3,
        "plan-once": lambda: ps.plan_once(process, epsilon=2.0),
        "plan-tree": lambda: ps.plan_tree(process, epsilon=2.0),
    }
    plan = plans[way]()
    one, same, other = (simulate(study, plan, patients=1500, exact=0.0, seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one.agreement.patients == 1500
    assert one.agreement.mean != other.agreement.mean


def test_batches_are_counted_as_their_patients_together(path, monkeypatch):
    """What is written of each patient of several batches has the mean and standard error that are given."""
    monkeypatch.setattr(simulation, "BATCH", 700)
    study = ps.load_study(path)
    rows = []
    table = np.full((32, 3), 1 / 3)
    found = simulate(study, [table], patients=1500, exact=0.0, seed=3, write=lambda *batch: rows.append(batch))
    assert [len(records) for records, *_ in rows] == [700, 700, 100]
    records, actions, rewards = (np.concatenate([batch[place] for batch in rows]) for place in range(3))
    assert found.agreement.mean == pytest.approx(rewards.mean(), rel=1e-12)
    assert found.agreement.standard_error == pytest.approx(rewards.std(ddof=1) / np.sqrt(1500), rel=1e-12)
    assert list(found.treatments.values()) == np.bincount(actions, minlength=3).tolist()
    assert records.shape == (1500,) and len(np.unique(records)) > 10
    for name, count in found.outcomes.items():
        assert count == sum(int(outcomes[name].sum()) for *_, outcomes in rows)


def test_memory_does_not_grow_with_the_number_of_patients(path, monkeypatch):
    monkeypatch.setattr(simulation, "BATCH", 1 << 12)
    study, table = ps.load_study(path), np.full((32, 3), 1 / 3)
    peaks = []
    for batches in (1, 2, 40):  # the first fills caches
        tracemalloc.start()
        simulate(study, [table], patients=batches << 12, exact=0.0, seed=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # 38 batches more would be 38 times as much, if they were kept.
    assert peaks[2] < 1.5 * peaks[1]


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
    arguments = ("simulate", str(path), "--patients", "20_000", "--horizon", "2", "--epsilon", "1", "--seed", "9")
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    assert out.startswith("20,000 simulated patients, 2 days, exponential at ε = 1 on each day\n")
    assert "Do they agree?       Yes: they are " in out
    document = json.loads(run(capsys, *arguments, "--json")[1])
    assert document["agrees"] and document["horizon"] == 2 and document["seed"] == 9
    assert document["interval"][0] < document["mean"] < document["interval"][1]
    # Everybody is treated on the first day, and nobody dies twice.
    assert 20_000 <= sum(document["treatments"].values()) <= 40_000
    assert 0 < document["outcomes"]["death"] < 20_000
    exact = document["exact_outcomes"]
    assert f"deaths {document['outcomes']['death']:,} {20_000 * exact['death']:,.1f}" in " ".join(out.split())
    # A patient has an outcome on two days at most.
    for name, count in document["outcomes"].items():
        assert abs(count - 20_000 * exact[name]) <= ERRORS * np.sqrt(2 * 20_000 * exact[name])


@pytest.mark.parametrize(("way", "plan"), [("plan-once", ps.plan_once), ("plan-tree", ps.plan_tree)])
def test_a_plan_of_the_whole_course_is_simulated(capsys, path, way, plan):
    arguments = ("simulate", str(path), "--patients", "2e4", "--horizon", "2", "--policy", way, "--epsilon", "2")
    code, out, err = run(capsys, *arguments)
    assert (code, err) == (0, "")
    assert f"20,000 simulated patients, 2 days, {way} at ε = 2 for the whole course\n" in out and "Yes: they" in out
    document = json.loads(run(capsys, *arguments, "--json")[1])
    assert document["policy"] == way
    course = ps.build_course(ps.load_study(path), 2)
    made = plan(course, epsilon=2.0)
    assert document["exact"] == pytest.approx(made.value, abs=1e-12)
    # Nobody has a symptom on more than two days.
    for name, count in document["outcomes"].items():
        expected = 20_000 * document["exact_outcomes"][name]
        assert expected > 0 and abs(count - expected) <= ERRORS * np.sqrt(2 * expected)


@pytest.mark.parametrize("kind", ["onset", "public"])
def test_patients_have_the_exact_value_and_outcomes_of_a_tree_of_courses(tmp_path, kind):
    scenario, text = KINDS[kind]
    study = ps.load_study(write_small_study(tmp_path, study=text, scenario=scenario))
    course = ps.build_course(study, 3)
    plan = ps.plan_tree(course, epsilon=6.0)
    assert plan.value > ps.plan_once(course, epsilon=6.0).value + 1e-4
    patients = 300_000
    found = simulate(study, plan, patients=patients, exact=plan.value, seed=8)
    assert found.agreement.errors_apart <= ERRORS
    assert not replace(found.agreement, exact=plan.value * 1.03).agrees
    assert sum(found.treatments.values()) >= patients
    deaths = patients * course.initial @ plan.counted("death")
    assert abs(found.outcomes["death"] - deaths) <= 5 * np.sqrt(deaths)


def test_actions_of_a_tree_that_are_held_are_given_on_all_their_days(tmp_path):
    study = ps.load_study(write_small_study(tmp_path, scenario=WITH_ONSET))
    plan = ps.plan_tree(ps.build_course(study, 4), epsilon=6.0, held=2)
    assert plan.held == (2, 2)
    found = simulate(study, plan, patients=300_000, exact=plan.value, seed=9).agreement
    assert found.errors_apart <= ERRORS


def test_a_schedule_is_kept_to_the_end(path):
    """A planted bug: a schedule that is drawn anew each day has another value, and is found out."""
    study = ps.load_study(path)
    course = ps.build_course(study, 3)
    plan = ps.plan_once(course, epsilon=1.0, policy="randomized-response", schedules=[[0, 1, 2], [2, 0, 0]])
    found = simulate(study, plan, patients=10**6, exact=plan.value, seed=3).agreement
    assert found.errors_apart <= ERRORS
    given = np.eye(3)[plan.schedules]  # (m, H, k)
    anew = [plan.probabilities @ given[:, day] for day in range(3)]
    wrong = simulate(study, anew, patients=10**6, exact=ps.policy_value(course, anew), seed=3).agreement
    assert wrong.errors_apart <= ERRORS
    assert not replace(wrong, exact=plan.value).agrees


def test_a_contraindicated_treatment_is_refused(tmp_path):
    scenario = WITH_ONSET.replace("[treatments.pill]", '[treatments.pill]\ncontraindicated = [{ age = "old" }]')
    study = ps.load_study(write_small_study(tmp_path, study=KINDS["public"][1], scenario=scenario))
    with pytest.raises(ValueError, match=r"pill is contraindicated for this patient \(age old\)"):
        simulate(study, [np.full((32, 3), 1 / 3)], patients=1000, exact=0.0, seed=0)


def test_a_value_that_is_wrong_is_exit_code_four(capsys, path, monkeypatch):
    monkeypatch.setattr("policysim.course.simulation.policy_value", lambda *_: 0.0)
    code, out, _ = run(capsys, "simulate", str(path), "--patients", "20000", "--horizon", "2")
    assert code == 4
    assert "Do they agree?       No: they are " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        *(
            (("--patients", wrong), f"--patients must be a whole number from 2 to 1,000,000,000, got '{wrong}'")
            for wrong in ("1", "1.5", "1e10", "nan", "1_00")
        ),
        (("--horizon", "0"), "--horizon must be a whole number from 1 to 366, got '0'"),
        (("--policy", "exponental"), "unknown policy 'exponental'; did you mean 'exponential'?"),
        (("--epsilon", "1,2"), "--epsilon must be one number with a decimal point, such as 0.5, got '1,2'"),
        (("--epsilon", "-1"), "--epsilon must be one number >= 0, got '-1'"),
        (("--horizon", "2", "--sensitive", "age"), "over days a public feature must never change, and infected, fever"),
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
