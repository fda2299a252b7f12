"""What `gymnasium.make` takes: scenarios and studies by name, path or themselves; a study's utility pays."""

import copy
import pickle
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from small_studies import SCENARIO, STUDY, write_small_study
from small_trials import small_study

import policysim as ps

ID = "policysim:policysim/Treatment-v1"
EXAMPLES = Path(__file__).parents[3] / "examples"
OTHER_UTILITY = STUDY + "\n[utility]\nweights = { death = 3, cough = 0 }\ncosts = { pill = 1.5 }\n"
N = 2_000


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return write_small_study(tmp_path_factory.mktemp("environment"), study=OTHER_UTILITY, scenario=SCENARIO)


@pytest.fixture(scope="module")
def study(path):
    return ps.load_study(path)


def rewards(**arguments):
    """What the first of many days pays, and what happened."""
    env = gymnasium.make_vec(ID, num_envs=N, autoreset_mode="Disabled", **arguments)
    env.reset(seed=5)
    _, paid, *_, infos = env.step(np.arange(N) % 3)
    return paid, infos["outcome"]


def test_a_study_pays_by_its_utility_however_it_is_given(path, study):
    found, outcome = rewards(study=study)
    weights = {"infected": 0.1, "fever": 0.2, "cough": 0.0, "death": 3.0}
    wanted = (
        -sum(weight * outcome[name] for name, weight in weights.items()) - np.array([0, 0.02, 1.5])[np.arange(N) % 3]
    )
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    for given in (
        {"study": path},
        {"study": str(path)},
        {"scenario": path},
        {"scenario": str(path)},
        {"scenario": study},
    ):
        assert np.array_equal(rewards(**given)[0], found)
    # By name stands what is named here, in place of the study's own.
    changed, _ = rewards(study=study, utility={"weights": {"death": 4}})
    np.testing.assert_allclose(found - changed, outcome["death"], atol=1e-12)


def test_a_scenario_pays_by_its_own_however_it_is_given(path, study):
    scenario = str(path.parent / "scenario.toml")
    found, _ = rewards(scenario=scenario)
    for given in (Path(scenario), ps.load_scenario(scenario), study.scenario):
        assert np.array_equal(rewards(scenario=given)[0], found)
    assert not np.array_equal(rewards(study=study)[0], found)


def test_names_are_those_of_scenarios_then_of_studies():
    for given in ({}, {"scenario": "covid"}, {"study": "covid"}, {"scenario": ps.load_scenario("covid")}):
        assert gymnasium.make(ID, **given).observation_space.shape == (18,)


@pytest.mark.parametrize("what", ["study", "scenario"])
def test_objects_survive_copies_pickles_the_checker_and_processes(study, what):
    given = {what: study if what == "study" else study.scenario}
    env = gymnasium.make(ID, horizon=3, **given)
    check_env(env.unwrapped)
    copies = gymnasium.make(env.spec), copy.deepcopy(env), pickle.loads(pickle.dumps(env))
    first, *others = [(other.reset(seed=3)[0].tolist(), other.step(2)[1], other.step(2)[1]) for other in (env, *copies)]
    assert others == [first] * 3
    assert pickle.loads(pickle.dumps(env.spec)) == env.spec
    many = gymnasium.make_vec(ID, num_envs=2, vectorization_mode="async", **given)
    try:
        assert many.reset(seed=0)[0].shape == (2, 5)
    finally:
        many.close()


def test_equal_scenarios_share_their_tables_and_other_numbers_have_their_own(study):
    persistent = replace(study.scenario, natural_clearing={**study.scenario.natural_clearing, "fever": 0.01})
    first, again, priced, other = (
        gymnasium.make(ID, **arguments).unwrapped.ward
        for arguments in (
            {"scenario": study.scenario},
            {"scenario": copy.deepcopy(study.scenario)},
            {"scenario": study.scenario, "utility": {"weights": {"death": 1}}},
            {"scenario": persistent},
        )
    )
    assert first is again and first is not priced
    assert [ward.scenario.natural_clearing["fever"] for ward in (first, other)] == [0.2, 0.01]
    assert (first.scenario.weights["death"], priced.scenario.weights["death"]) == (10, 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"scenario": "covid", "study": "covid"},
            "give a scenario or a study, .* not both; got scenario='covid', study",
        ),
        ({"study": 3}, "study must be a Study, a built-in name or a path, got int 3"),
        ({"study": ps.load_scenario("covid")}, "study must be a Study, .* got Scenario 'covid'"),
        ({"study": "flu"}, "unknown study 'flu'"),
        ({"scenario": "flu"}, "unknown scenario 'flu'"),
        ({"study": str(EXAMPLES / "ward" / "scenario.toml")}, "is a scenario, and no study"),
        ({"scenario": "missing.toml"}, "missing.toml: cannot be read"),
        ({"study": "covid", "utility": {"weights": {"flu": 1}}}, "unknown outcome 'flu'"),
        ({"study": "warfarin"}, "warfarin has no environment, as the study of a table: use policysim.compare"),
        (
            {"scenario": small_study()},
            "has no environment, as the study of a log: use policysim.evaluate_log",
        ),
    ],
)
def test_what_is_no_scenario_or_study_is_refused_in_a_line(arguments, message):
    for make in (gymnasium.make, gymnasium.make_vec):
        with pytest.raises(ValueError, match=message) as error:
            make(ID, **arguments)
        assert "\n" not in str(error.value)
