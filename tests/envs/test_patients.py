"""Patients treated by compiled code and by NumPy: the same stays, bit by bit, with the exact chances."""

import copy
import os
import pickle
import re
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from brute_force import SCENARIOS, scenario
from gymnasium.utils.env_checker import data_equivalence
from hypothesis import HealthCheck, assume, given, settings
from random_scenarios import scenario_texts
from vector_pair import MODES

import envs
import policysim  # noqa: F401 - registers the environments
from envs import inpatients as module
from envs.treatment import TreatmentEnv
from envs.treatment_vector import TreatmentVectorEnv
from envs.ward import Ward

pytest.importorskip("numba")

ID = "policysim/Treatment-v1"
HERE = Path(__file__).parent
WARD = str(HERE.parents[1] / "examples" / "ward" / "scenario.toml")


def allowed(env, rng):
    """An action that each patient may get, drawn evenly."""
    return (rng.random((env.num_envs, env.single_action_space.n)) * env.action_masks()).argmax(axis=1)


def assert_same_stays(one, two, *, steps=12, seed=3):
    """The same from two vector environments: all that they return, with resets of some places and given records."""
    rng = np.random.default_rng(0)
    for again in (seed, None):
        wanted = one.reset(seed=again)
        assert data_equivalence(two.reset(seed=again), wanted, exact=True)
        for step in range(steps):
            actions = allowed(one, rng)
            wanted = one.step(actions)
            assert data_equivalence(two.step(actions), wanted, exact=True)
            assert wanted[0].flags.c_contiguous
            if one.metadata["autoreset_mode"].value == "Disabled" and wanted[2].any() and step % 2:
                options = {"reset_mask": wanted[2], **({"record": {}} if step % 4 == 1 else {})}
                new = one.reset(options=options)
                assert data_equivalence(two.reset(options=options), new, exact=True)
                wanted = new


def pair(source, mode, horizon, n, **arguments):
    """The environment compiled, and by NumPy."""
    return tuple(
        TreatmentVectorEnv(n, source, horizon=horizon, autoreset_mode=mode, compiled=compiled, **arguments)
        for compiled in (True, False)
    )


@pytest.fixture(scope="module")
def paths(tmp_path_factory):
    """Scenarios of all kinds, by name."""
    folder = tmp_path_factory.mktemp("scenarios")
    for name in SCENARIOS:
        scenario(name, folder)
    small = {name: str(folder / f"{name}.toml") for name in SCENARIOS}
    return {"covid": "covid", "ward": WARD, "small": str(HERE / "data" / "small.toml"), **small}


# Compiled code against NumPy.


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("horizon", [1, 4])
@pytest.mark.parametrize("name", ["covid", "ward", "small", *SCENARIOS])
def test_compiled_code_and_numpy_give_the_same_stays_bit_by_bit(name, horizon, mode, paths):
    assert_same_stays(*pair(paths[name], mode, horizon, 700))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(text=scenario_texts())
def test_they_do_in_any_scenario(text, tmp_path_factory):
    path = tmp_path_factory.mktemp("random") / "scenario.toml"
    path.write_text(text)
    try:
        env = TreatmentVectorEnv(2, str(path))
    except envs.InputFileError:
        assume(False)
    assume(env.ward._allowed.any(axis=1).all())
    assert_same_stays(*pair(str(path), "NextStep", 3, 60), steps=6)


@pytest.mark.parametrize("places", [1, 300, 1_999, 2_000])
def test_threads_change_nothing(places, monkeypatch):
    one, two = pair("covid", "NextStep", 5, 2_000)
    monkeypatch.setattr(module, "PLACES_AT_ONCE", places if places > 1 else 50)
    treat, alone = one.step, []
    monkeypatch.setattr(one, "step", lambda actions: alone.append(treat(actions)) or alone[-1])
    assert_same_stays(one, two, steps=6)
    monkeypatch.undo()
    again = TreatmentVectorEnv(2_000, horizon=5, compiled=False)
    again.reset(seed=3)
    assert data_equivalence(again.step(allowed(again, np.random.default_rng(0))), alone[0], exact=True)


@pytest.mark.parametrize("mode", MODES)
def test_going_on_compiled_in_the_middle_changes_nothing(mode, monkeypatch):
    later, always = (TreatmentVectorEnv(900, horizon=5, autoreset_mode=mode, compiled=c) for c in (None, False))
    monkeypatch.setattr(module, "_kernel", lru_cache(module._kernel.__wrapped__))  # as if it had none yet
    monkeypatch.setattr(module, "WORTH", (900 + module.CALL) * 30)
    assert_same_stays(always, later, steps=3)
    assert later._patients._compiled is None
    assert_same_stays(always, later)
    assert later._patients._compiled is True


def test_a_process_that_has_compiled_code_begins_with_it():
    pair("covid", "NextStep", 1, 2)[0].reset()  # fetches it
    env = TreatmentVectorEnv(2)
    env.reset()
    assert env._patients._compiled is True


def test_the_kernel_is_compiled_once_whatever_array_the_actions_are():
    env, actions = TreatmentVectorEnv(50, compiled=True), np.arange(50) % 4
    env.reset(seed=1)
    wanted = env.step(actions)
    dispatcher = module._kernel().dispatchers["treat"]
    known = list(dispatcher.signatures)
    frozen = actions.copy()
    frozen.flags.writeable = False
    for asked in (frozen, np.stack([actions, actions], axis=1)[:, 0], actions.astype(">i4")):
        env.reset(seed=1)
        assert data_equivalence(env.step(asked), wanted, exact=True)
    TreatmentEnv(compiled=True).reset()
    assert dispatcher.signatures == known


def planted(**changes):
    """The compiled environment with other tables, and NumPy's with those that it should have."""
    one, two = pair("covid", "NextStep", 4, 2_000)
    one.reset(seed=1)
    tables = one.ward.tables
    other = object.__new__(Ward)
    vars(other).update(vars(one.ward))
    one._patients.ward = other
    other.tables = tables._replace(**{name: change(tables) for name, change in changes.items()})
    return one, two


@pytest.mark.parametrize(
    "changes",
    [
        {"values": lambda t: t.values - 1e-3},
        {"absence": lambda t: t.absence * (1 - 1e-3)},
        {"least": lambda t: np.ones(len(t.least))},  # nothing would appear in a night
        {"n_numbers": lambda t: t.n_numbers + 1},
        {"horizon": lambda t: t.horizon - 1},
    ],
    ids=["the hazards", "an absence", "the nights", "other draws", "a day"],
)
def test_a_number_that_is_a_little_off_would_be_noticed(changes):
    one, two = planted(**changes)
    with pytest.raises(AssertionError):
        assert_same_stays(two, one)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_as_the_original(copied):
    env, _ = pair("covid", "NextStep", 14, 30)
    env.reset(seed=1)
    env.step(np.zeros(30, dtype=int))
    other = copied(env)
    for _ in range(4):
        assert data_equivalence(env.step(np.ones(30, dtype=int)), other.step(np.ones(30, dtype=int)), exact=True)


def test_charts_are_the_same():
    one, two = pair("covid", "NextStep", 3, 5, render_mode="ansi")
    assert_same_stays(one, two)
    assert one.render() == two.render()


# One patient.


@pytest.mark.parametrize("horizon", [1, 6])
@pytest.mark.parametrize("name", ["covid", "ward", "small", *SCENARIOS])
def test_one_patient_is_the_vectors_first_place(name, horizon, paths):
    one = TreatmentEnv(paths[name], horizon=horizon, compiled=True)
    many = TreatmentVectorEnv(1, paths[name], horizon=horizon, autoreset_mode="Disabled", compiled=False)
    rng = np.random.default_rng(0)
    for turn in range(60):
        given = {"seed": 3 if turn in (0, 50) else None, "options": {"record": {}} if turn % 7 == 6 else None}
        (observation, info), (observations, infos), over = one.reset(**given), many.reset(**given), False
        assert info["day"] == infos["day"][0]
        while not over:
            assert one.observation_space.contains(observation)
            assert np.array_equal(observations[0], observation)
            action = int(allowed(many, rng)[0])
            assert np.array_equal(info.get("action_mask"), infos["action_mask"][0] if "action_mask" in infos else None)
            observation, reward, over, _, info = one.step(action)
            observations, rewards, terminations, _, infos = many.step(np.array([action]))
            assert (rewards[0], terminations[0]) == (reward, over)
            assert type(over) is bool
            assert {name: infos["outcome"][name][0] for name in info["outcome"]} == info["outcome"]
            assert {type(happened) for happened in info["outcome"].values()} == {bool}


# Contraindications.


def refusals(paths, seed=2):
    """What each way of treating says to each record and treatment, and what it does next: one, NumPy, compiled."""
    space = envs.load_scenario(paths["language"]).space
    one = TreatmentEnv(paths["language"], horizon=3)
    ways = [one, *reversed(pair(paths["language"], "Disabled", 3, 3))]
    for record in range(space.size):
        codes = zip(space.features, space.codes([record])[0], strict=True)
        values = {feature.name: feature.levels[code] for feature, code in codes}
        for action in range(4):
            told = []
            for env in ways:
                _, info = env.reset(seed=seed, options={"record": values})
                mask = np.atleast_2d(info["action_mask"])
                assert mask.dtype == np.int8 and (mask == mask[0]).all()
                said = ""
                try:
                    env.step(action if env is one else [0, action, action])
                except ValueError as error:
                    said = str(error).replace("actions[1]", "action")
                    after = env.step(0 if env is one else [0, 0, 0])
                    # Nothing was drawn: as if nobody had asked.
                    env.reset(seed=seed, options={"record": values})
                    assert data_equivalence(env.step(0 if env is one else [0, 0, 0]), after, exact=True)
                assert bool(said) == (not mask[0, action])
                told.append((said, mask[0].tolist()))
            assert told[0] == told[1] == told[2]
            yield told[0][0]


def test_who_may_not_get_a_treatment_is_refused_it_alike_by_all(paths):
    """By the mask of each record, with the same words, before anything is drawn."""
    said = list(refusals(paths))
    wanted = ~envs.ResponseModel(envs.load_scenario(paths["language"])).admissible
    assert [bool(each) for each in said] == wanted.ravel().tolist()


def test_nobody_whose_stay_has_ended_is_refused_anything(paths):
    for env in pair(paths["language"], "Disabled", 2, 2):
        env.reset(options={"record": {"pregnancy": 1}})
        assert env.step([0, 0])[2].all()  # without a flag they recover
        assert not env.step([1, 3])[1].any()


# Chances.


def test_those_admitted_are_the_cohort(paths, too_far):
    chain = envs.load_scenario(paths["chain"])
    env, n = TreatmentVectorEnv(200_000, paths["chain"], compiled=True), 200_000
    observations, _ = env.reset(seed=1)
    counts = np.bincount(chain.space.indices(observations), minlength=chain.space.size)
    assert not too_far(counts, envs.prior(chain) * n)
    # By the next step, too, where all stays last a day.
    env.step(np.zeros(n, dtype=int))
    again = env.step(np.zeros(n, dtype=int))[0]
    assert not too_far(np.bincount(chain.space.indices(again), minlength=chain.space.size), envs.prior(chain) * n)
    assert too_far(counts, np.roll(envs.prior(chain), 1) * n)


def test_other_seeds_give_other_patients_who_have_nothing_to_do_with_these():
    env, n, fevers = TreatmentVectorEnv(40_000, autoreset_mode="Disabled", compiled=True), 40_000, []
    for seed in (0, 1, 2, 0):
        env.reset(seed=seed, options={"record": {"covid_positive": 1, "fever": 1}})
        fevers.append(env.step(np.zeros(n, dtype=int))[4]["outcome"]["fever"].astype(float))
    assert np.array_equal(fevers[0], fevers[3])
    correlations = np.corrcoef([*fevers[:3], np.roll(fevers[0], 1)])[np.triu_indices(4, 1)]
    # Five standard errors of a correlation.
    assert np.abs(correlations).max() <= 5 / np.sqrt(n)


# What it promises about itself.


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("given", [{"compiled": False}, {"compiled": True}, {"scenario": WARD, "compiled": True}])
def test_the_vector_environment_keeps_gymnasiums_promises(mode, given):
    """As `check_env` asks of one environment: seeds, spaces, types, new arrays, options, render, close."""
    arguments = {"num_envs": 6, "horizon": 3, "render_mode": "ansi", "autoreset_mode": mode, **given}
    one, two = (gymnasium.make_vec(ID, vectorization_mode="vector_entry_point", **arguments) for _ in range(2))
    assert one.metadata["autoreset_mode"].value == mode and "ansi" in one.metadata["render_modes"]
    assert one.spec.id == ID and one.unwrapped is one and not one.closed
    assert one.action_space == gymnasium.vector.utils.batch_space(one.single_action_space, 6)
    assert one.observation_space == gymnasium.vector.utils.batch_space(one.single_observation_space, 6)
    assert data_equivalence(one.reset(seed=7), two.reset(seed=7), exact=True)
    assert one.np_random_seed == 7 and one.np_random is not two.np_random
    observations, infos, over = *two.reset(seed=7), np.zeros(6, dtype=bool)
    one.reset(seed=7)
    for _ in range(7):
        if mode == "Disabled" and over.any():
            observations, infos = one.reset(options={"reset_mask": over})
            assert data_equivalence((observations, infos), two.reset(options={"reset_mask": over}), exact=True)
        actions = allowed(one, np.random.default_rng(0))
        if "action_mask" in infos:
            assert infos["action_mask"][np.arange(6), actions].all() or mode == "Disabled"
        found = one.step(actions)
        assert data_equivalence(found, two.step(actions), exact=True)
        observations, rewards, over, truncations, infos = found
        assert observations in one.observation_space and observations.dtype == one.observation_space.dtype
        assert [each.dtype for each in (rewards, over, truncations)] == [np.float64, np.bool_, np.bool_]
        assert all(each.shape == (6,) for each in (rewards, over, truncations)) and not truncations.any()
        assert ("final_obs" in infos) == (mode == "SameStep" and over.any())
        if "final_obs" in infos:
            assert (infos["_final_obs"] == over).all()
            assert all(infos["final_obs"][place] in one.single_observation_space for place in np.flatnonzero(over))
    assert len(one.render()) == 6 and all(isinstance(chart, str) for chart in one.render())
    assert not data_equivalence(one.reset(seed=8), two.reset(seed=7), exact=True)
    for env in (one, two):
        env.close()
        assert env.closed


@pytest.mark.parametrize("how", ["sync", "async"])
def test_gymnasiums_own_vectors_of_version_1_are_its_single_environments(how):
    env = gymnasium.make_vec(ID, num_envs=2, vectorization_mode=how, horizon=3)
    try:
        observations, _ = env.reset(seed=[4, 5])
        for seed, seen in zip((4, 5), observations, strict=True):
            assert np.array_equal(gymnasium.make(ID, horizon=3).reset(seed=seed)[0], seen)
        assert env.step(np.array([0, 1]))[0] in env.observation_space
    finally:
        env.close()


def in_a_new_process(code, **variables):
    known = {**os.environ, **variables}
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=known)
    return found.stdout.strip(), found.stderr.strip()


def test_a_small_run_does_not_compile():
    code = (
        "import sys, gymnasium, policysim; env = gymnasium.make_vec('policysim/Treatment-v1', num_envs=9); "
        "env.reset(); env.step([0] * 9); print('numba' in sys.modules)"
    )
    assert in_a_new_process(code) == ("False", "")


BEGINS = (
    "import gymnasium, numpy as np, policysim\n"
    "def stays(compiled):\n"
    "    env = gymnasium.make_vec('policysim/Treatment-v1', num_envs=50, horizon=3, compiled=compiled)\n"
    "    return [env.reset(seed=1)[0], *(env.step(np.arange(50) % 4)[0] for _ in range(3))]\n"
    "print(all(map(np.array_equal, stays(True), stays(False))))\n"
)


def test_it_says_what_it_waits_for_only_where_it_waits(tmp_path):
    wanted = "policysim: compiling the patients' days, which takes some seconds, once on this machine."
    assert in_a_new_process(BEGINS, NUMBA_CACHE_DIR=str(tmp_path)) == ("True", wanted)
    assert list(tmp_path.rglob("*.nbi"))
    assert in_a_new_process(BEGINS, NUMBA_CACHE_DIR=str(tmp_path)) == ("True", "")


def test_where_nothing_can_be_kept_on_the_disk_it_is_compiled_all_the_same():
    # What numba finds where neither the folder of the file nor the user's can be written: no place.
    code = "from numba.core import caching; caching.CacheImpl._locator_classes = []\n" + BEGINS
    printed, told = in_a_new_process(code)
    assert printed == "True"
    assert told.endswith("in this process, as nothing can be kept on the disk.")


def test_where_the_disk_is_full_it_is_compiled_all_the_same():
    code = (
        "import errno\n"
        "from numba.core import caching\n"
        "def full(self, name, data): raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "caching.IndexDataCacheFile.save = full\n"
        "caching.IndexDataCacheFile.load = lambda *_: None\n"
    )
    assert in_a_new_process(code + BEGINS)[0] == "True"


def test_with_a_numba_that_does_not_work_numpy_goes_on(monkeypatch):
    def fails():
        raise ImportError("Numba needs NumPy 2.2 or less")

    monkeypatch.setattr(module, "_kernel", lru_cache(fails))
    monkeypatch.setattr(module, "WORTH", 1)
    going_on, by_numpy = TreatmentVectorEnv(20), TreatmentVectorEnv(20, compiled=False)
    assert_same_stays(by_numpy, going_on, steps=4)
    with pytest.raises(ImportError, match="Numba needs NumPy"):
        TreatmentVectorEnv(20, compiled=True).reset()


def test_compiled_must_be_a_truth_value_or_none():
    with pytest.raises(ValueError, match=re.escape("compiled must be True, False or None, got compiled='yes'.")):
        TreatmentVectorEnv(2, compiled="yes")


def test_without_numba_it_says_what_to_install_and_numpy_goes_on(monkeypatch):
    monkeypatch.setattr("envs.inpatients.find_spec", lambda _: None)
    with pytest.raises(ValueError, match=re.escape("needs numba: pip install 'policysim[fast]'")):
        TreatmentVectorEnv(2, compiled=True)
    assert TreatmentVectorEnv(2)._patients._compiled is False
