"""Version 1 of the environments: compiled code against NumPy, version 0 with the same numbers, and exact chances."""

import copy
import inspect
import pickle
import re
import subprocess
import sys
from functools import lru_cache, partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from brute_force import SCENARIOS, ByHand, scenario
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env, data_equivalence
from hypothesis import HealthCheck, assume, given, settings
from random_scenarios import scenario_texts
from vector_pair import MODES, N, Pair, assert_same

import envs
import policysim  # noqa: F401 - registers the environments
from envs import compiled as compiled_module
from envs import philox
from envs import treatment_v1 as module
from envs.compiled import MOST_OUTCOMES, Pass
from envs.one_patient import FIELD, OnePatient, _limits
from envs.stay import ward_of
from envs.treatment import TreatmentEnv
from envs.treatment_v1 import TreatmentEnvV1, TreatmentVectorEnvV1
from envs.treatment_vector import TreatmentVectorEnv
from envs.utility import Payoff, utility_of

pytest.importorskip("numba")

ID = "policysim/Treatment-v1"
HERE = Path(__file__).parent
WARD = str(HERE.parents[1] / "examples" / "ward" / "scenario.toml")


def allowed(env, observations, rng):
    """An action that each patient may get, drawn evenly."""
    codes = observations[:, : len(env._ward.scenario.space.shape)]
    return (rng.random((env.num_envs, env.single_action_space.n)) * env._ward.action_mask(codes)).argmax(axis=1)


def assert_same_stays(one, two, *, steps=12, seed=3):
    """The same from two vector environments: all that they return, with resets of some places and given records."""
    rng = np.random.default_rng(0)
    for again in (seed, None):
        wanted = one.reset(seed=again)
        assert data_equivalence(two.reset(seed=again), wanted, exact=True)
        for step in range(steps):
            actions = allowed(one, wanted[0], rng)
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
        TreatmentVectorEnvV1(n, source, horizon=horizon, autoreset_mode=mode, compiled=compiled, **arguments)
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
        env = TreatmentVectorEnvV1(2, str(path))
    except envs.InputFileError:
        assume(False)
    assume((env._ward.action_mask(env._ward.scenario.space.codes(np.arange(32))).any(axis=1)).all())
    assert_same_stays(*pair(str(path), "NextStep", 3, 60), steps=6)


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 40])
def test_threads_change_nothing(threads, monkeypatch):
    one, two = pair("covid", "NextStep", 5, 2_000)
    monkeypatch.setattr(module, "Pass", partial(Pass, threads=threads))
    assert_same_stays(one, two, steps=6)
    assert len(one._pass._parts) == threads


@pytest.mark.parametrize("mode", MODES)
def test_going_on_compiled_in_the_middle_changes_nothing(mode, monkeypatch):
    later, always = (TreatmentVectorEnvV1(900, horizon=5, autoreset_mode=mode, compiled=None) for _ in range(2))
    always._may_compile = False
    for name in ("WORTH_COMPILING", "WORTH_FETCHING"):
        monkeypatch.setattr(module, name, 900 * 7)
    assert_same_stays(always, later)
    assert later._pass is not None


def test_the_kernel_is_compiled_once_whatever_array_the_actions_are():
    env, actions = TreatmentVectorEnvV1(50, compiled=True), np.arange(50) % 4
    env.reset(seed=1)
    wanted = env.step(actions)
    known = list(compiled_module._kernel().treat.signatures)
    frozen = actions.copy()
    frozen.flags.writeable = False
    for asked in (frozen, np.stack([actions, actions], axis=1)[:, 0], actions.astype(">i4")):
        env.reset(seed=1)
        assert data_equivalence(env.step(asked), wanted, exact=True)
    assert compiled_module._kernel().treat.signatures == known


def test_a_number_that_is_a_little_off_would_be_noticed():
    one, two = pair("covid", "NextStep", 4, 2_000)
    one.reset(seed=1)
    values = one._pass._tables.values
    one._pass._tables = one._pass._tables._replace(values=np.where(values == values.max(), values - 0.02, values))
    with pytest.raises(AssertionError):
        assert_same_stays(two, one)


def test_a_bound_of_the_night_that_is_too_high_would_be_noticed(monkeypatch, paths):
    one, two = pair("covid", "NextStep", 4, 2_000)
    one.reset(seed=1)
    one._pass._tables = one._pass._tables._replace(least=np.ones(one._pass._tables.n_flags))
    with pytest.raises(AssertionError):
        assert_same_stays(two, one)
    monkeypatch.setattr(OnePatient, "_appearing", lambda *_: 0)
    with pytest.raises(AssertionError):
        test_one_patient_is_the_vectors_first_place("chain", 6, paths)


def test_a_draw_of_another_time_would_be_noticed(monkeypatch):
    one, two = pair("covid", "NextStep", 4, 200)
    treat = Pass.treat
    monkeypatch.setattr(Pass, "treat", lambda self, time, *given, **named: treat(self, time + 1, *given, **named))
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


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_of_one_patient_goes_on_as_the_original_and_shares_what_never_changes(copied):
    env = TreatmentEnvV1(horizon=14, render_mode="ansi")
    env.reset(seed=3, options={"record": {"covid_positive": 1, "fever": 1, "blood_clots": 1}})
    env.step(0)
    other = copied(env)
    assert other._patient._tables is env._patient._tables
    while not env._over:
        assert data_equivalence(env.step(0), other.step(0), exact=True)
    assert env.render() == other.render()


def test_one_patients_steps_need_a_patient_and_a_treatment():
    env = TreatmentEnvV1()
    with pytest.raises(ResetNeeded, match="the stay has not begun"):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=re.escape("action must be a whole number from 0 to 3")):
        env.step(4)
    env.step(np.int64(3))
    with pytest.raises(ResetNeeded, match="the stay has ended"):
        env.step(0)


def test_charts_are_the_same():
    one, two = pair("covid", "NextStep", 3, 5, render_mode="ansi")
    assert_same_stays(one, two)
    assert one.render() == two.render()


def test_nothing_that_was_returned_can_change_what_comes():
    left_alone, tampered = (TreatmentVectorEnvV1(50, horizon=4, compiled=True) for _ in range(2))
    wanted, found = left_alone.reset(seed=1), tampered.reset(seed=1)
    for step in range(6):
        assert data_equivalence(found, wanted, exact=True)
        for array in (*found[:-1], found[-1]["day"], found[-1].get("_outcome", found[0])):
            array[...] = 1
        wanted, found = (env.step(np.full(50, step % 4)) for env in (left_alone, tampered))


# Against version 0.


class CountedPair(Pair):
    """Version 1, compiled, and Gymnasium's vector of single environments of version 0 that get the same numbers."""

    def __init__(self, mode, **arguments):
        super().__init__(mode, **arguments)
        self.native = TreatmentVectorEnvV1(N, autoreset_mode=mode, compiled=True, **arguments)
        self.native.np_random = np.random.default_rng(1)
        self.step_native, self.native.step = self.native.step, self.note
        self.who = np.arange(N)

    def note(self, actions):
        idle = self.over
        found = self.step_native(actions)
        who = {"NextStep": idle, "SameStep": found[2], "Disabled": np.zeros(N, dtype=bool)}[self.mode]
        self.who = np.flatnonzero(who)
        return found

    def reset(self, mask=None, record=None):
        self.who = np.flatnonzero(np.ones(N) if mask is None else mask)
        self.in_reset = True
        found = super().reset(mask, record)
        self.in_reset = False
        return found

    def taken(self):
        counter, n_draws = self.native._counter, self.native._ward.n_draws
        arrivals = philox.arrivals(counter.key, self.who, counter.time)
        day = philox.days(counter.key, np.arange(N), counter.time, n_draws)
        return [arrivals] if self.in_reset else [day, arrivals] if self.who.size else [day]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", ["covid", "chain"])
def test_it_is_gymnasiums_vector_of_version_0_with_the_same_numbers(mode, name, paths):
    both, rng = CountedPair(mode, scenario=paths[name], horizon=4), np.random.default_rng(2)
    assert_same(*both.reset())
    for step in range(15):
        found, wanted = both.step(rng.integers(both.native.single_action_space.n, size=N))
        assert_same(found, wanted)
        if mode == "Disabled" and found[2].any():
            assert_same(*both.reset(mask=found[2], record={} if step % 5 == 0 else None))


@pytest.mark.parametrize("horizon", [1, 6])
@pytest.mark.parametrize("name", ["covid", "ward", "small", *SCENARIOS])
def test_one_patient_is_the_vectors_first_place(name, horizon, paths):
    one = TreatmentEnvV1(paths[name], horizon=horizon)
    many = TreatmentVectorEnvV1(1, paths[name], horizon=horizon, autoreset_mode="Disabled", compiled=False)
    rng = np.random.default_rng(0)
    for turn in range(60):
        given = {"seed": 3 if turn in (0, 50) else None, "options": {"record": {}} if turn % 7 == 6 else None}
        (observation, info), (observations, infos), over = one.reset(**given), many.reset(**given), False
        assert info["day"] == infos["day"][0]
        while not over:
            assert one.observation_space.contains(observation)
            assert np.array_equal(observations[0], observation)
            action = int(allowed(many, observations, rng)[0])
            assert np.array_equal(info.get("action_mask"), infos["action_mask"][0] if "action_mask" in infos else None)
            observation, reward, over, _, info = one.step(action)
            observations, rewards, terminations, _, infos = many.step(np.array([action]))
            assert (rewards[0], terminations[0]) == (reward, over)
            assert type(over) is bool
            assert {name: infos["outcome"][name][0] for name in info["outcome"]} == info["outcome"]
            assert {type(happened) for happened in info["outcome"].values()} == {bool}


# Contraindications.


def test_a_mask_that_is_wrong_for_one_place_of_a_table_would_be_noticed(paths):
    one, two = pair(paths["language"], "NextStep", 4, 500)
    one.reset(seed=1)
    allowed = one._pass._tables.allowed.copy()
    wrong = np.argwhere(allowed == 1)[-1]  # of those who may get the last treatment
    allowed[tuple(wrong)] = 0
    one._pass._tables = one._pass._tables._replace(allowed=allowed)
    with pytest.raises(AssertionError):
        assert_same_stays(two, one)


def refusals(paths, seed=2):
    """What each way of treating says to each record and treatment, and what it does next: one, NumPy, compiled."""
    space = envs.load_scenario(paths["language"]).space
    one = TreatmentEnvV1(paths["language"], horizon=3)
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


def test_a_compiled_pass_that_refuses_nobody_would_be_noticed(paths, monkeypatch):
    monkeypatch.setattr(Pass, "refuses", lambda *_: False)
    with pytest.raises(AssertionError):
        list(refusals(paths))


def test_nobody_whose_stay_has_ended_is_refused_anything_by_compiled_code_either(paths):
    for env in pair(paths["language"], "Disabled", 2, 2):
        env.reset(options={"record": {"pregnancy": 1}})
        assert env.step([0, 0])[2].all()  # without a flag they recover
        assert "outcome" not in env.step([1, 3])[4]


def test_one_patient_is_the_same_when_everything_kept_is_forgotten(monkeypatch):
    def stays():
        env, seen = TreatmentEnvV1(WARD, horizon=6), []
        for turn in range(40):
            env.action_space.seed(turn)
            seen.append(env.reset(seed=turn))
            while not env._over:
                seen.append(env.step(env.action_space.sample(seen[-1][-1].get("action_mask"))))
        return seen, env._patient

    wanted, patient = stays()
    assert len(patient._plans) > 2
    monkeypatch.setattr("envs.one_patient.MOST_KEPT", 2)
    found, patient = stays()
    assert len(patient._plans) <= 2
    assert data_equivalence(found, wanted, exact=True)


def test_limits_of_words_decide_as_the_middles_of_their_intervals():
    rng = np.random.default_rng(0)
    middles = (rng.integers(0, 2**32, size=100) + 0.5) / 2**32
    near = np.concatenate([middles, np.nextafter(middles, 0), np.nextafter(middles, 1), rng.random(100) * 2.0**-33])
    chances = [0.0, 0.25 - 2**-34, 0.5, 1.0 - 2**-53, 1.0, *near.tolist()]
    for place, chance in enumerate(chances):
        limit = _limits(chances) >> (FIELD * place) & (2**FIELD - 1)
        words = np.clip(limit + np.arange(-2, 3), 0, 2**32 - 1).astype(np.uint32)
        assert ((philox.middles(words) >= chance) == (words >= limit)).all()


@pytest.mark.parametrize("of", [(TreatmentEnvV1, TreatmentEnv), (TreatmentVectorEnvV1, TreatmentVectorEnv)])
def test_version_1_takes_what_version_0_takes(of):
    new, old = (list(inspect.signature(cls).parameters) for cls in of)
    assert new[: len(old)] == old
    text = inspect.getdoc(of[0])
    assert all(f"`{name}`" in text for name in new) or "As `policysim/Treatment-v0`" in text


# Chances.


def test_those_admitted_are_the_cohort(paths, too_far):
    chain = envs.load_scenario(paths["chain"])
    env, n = TreatmentVectorEnvV1(200_000, paths["chain"], compiled=True), 200_000
    observations, _ = env.reset(seed=1)
    counts = np.bincount(chain.space.indices(observations), minlength=chain.space.size)
    assert not too_far(counts, envs.prior(chain) * n)
    # By the next step, too, where all stays last a day.
    env.step(np.zeros(n, dtype=int))
    again = env.step(np.zeros(n, dtype=int))[0]
    assert not too_far(np.bincount(chain.space.indices(again), minlength=chain.space.size), envs.prior(chain) * n)
    assert too_far(counts, np.roll(envs.prior(chain), 1) * n)


def z_scores(shift=0.0):
    """Standard errors between simulated and exact frequencies, by outcome and action, at horizon 1."""
    n, scores = 65_536, []
    env = TreatmentVectorEnvV1(n, autoreset_mode="Disabled", compiled=True)
    space, response = env._ward.scenario.space, envs.ResponseModel(env._ward.scenario)
    for seed in range(4):
        observations, _ = env.reset(seed=seed)
        actions = np.random.default_rng(seed).integers(4, size=n)
        *_, infos = env.step(actions)
        happened = np.column_stack([infos["outcome"][name] for name in env._ward.scenario.outcomes])
        chance = response.outcome_probabilities(space.indices(observations))[np.arange(n), actions] + shift
        for action in range(4):
            treated = actions == action
            spread = np.sqrt((chance * (1 - chance))[treated].sum(axis=0))
            scores.append((happened[treated].sum(axis=0) - chance[treated].sum(axis=0)) / spread)
    return np.abs(scores)


def test_outcomes_have_their_exact_frequencies():
    # 4 standard errors for each of 144 counts: one beyond by chance once in 100 seeds, and the seeds are fixed.
    assert z_scores().max() <= 4
    assert z_scores(shift=0.01).max() > 4


def test_mean_rewards_of_two_days_are_those_of_every_path(paths):
    by_hand, n = ByHand(envs.load_scenario(paths["chain"]), 2), 100_000
    env = TreatmentVectorEnvV1(n, paths["chain"], horizon=2, autoreset_mode="Disabled", compiled=True)
    start = {"infected": 1, "fever": 1, "old": "yes"}
    rewards, onward = by_hand.rewards(), by_hand.matrices()
    record = by_hand.scenario.space.record(start)
    wanted = rewards[record, 1] + onward[1, record] @ rewards[:, 2]
    env.reset(seed=5, options={"record": start})
    returns = env.step(np.full(n, 1))[1] + env.step(np.full(n, 2))[1]
    # Five standard errors of the mean.
    assert abs(returns.mean() - wanted) <= 5 * returns.std() / np.sqrt(n)


def test_other_seeds_give_other_patients_who_have_nothing_to_do_with_these():
    env, n, fevers = TreatmentVectorEnvV1(40_000, autoreset_mode="Disabled", compiled=True), 40_000, []
    for seed in (0, 1, 2, 0):
        env.reset(seed=seed, options={"record": {"covid_positive": 1, "fever": 1}})
        fevers.append(env.step(np.zeros(n, dtype=int))[4]["outcome"]["fever"].astype(float))
    assert np.array_equal(fevers[0], fevers[3])
    correlations = np.corrcoef([*fevers[:3], np.roll(fevers[0], 1)])[np.triu_indices(4, 1)]
    # Five standard errors of a correlation.
    assert np.abs(correlations).max() <= 5 / np.sqrt(n)


# What it promises about itself.


@pytest.mark.parametrize("horizon", [1, 14])
@pytest.mark.parametrize("render_mode", [None, "ansi"])
def test_gymnasiums_checker_has_nothing_to_say(horizon, render_mode):
    check_env(gymnasium.make(ID, horizon=horizon, render_mode=render_mode).unwrapped)


def test_gymnasium_makes_both():
    assert isinstance(gymnasium.make(ID).unwrapped, TreatmentEnvV1)
    env = gymnasium.make_vec(ID, num_envs=3, horizon=5)
    assert isinstance(env, TreatmentVectorEnvV1)
    env.reset(seed=0)
    assert env.observation_space.contains(env.step(np.array([0, 1, 2]))[0])


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
        actions = allowed(one, observations, np.random.default_rng(0))
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


def in_a_new_process(code):
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return found.stdout.strip(), found.stderr.strip()


def test_a_small_run_does_not_compile():
    code = (
        "import sys, gymnasium, policysim; env = gymnasium.make_vec('policysim/Treatment-v1', num_envs=9); "
        "env.reset(); env.step([0] * 9); print('numba' in sys.modules)"
    )
    assert in_a_new_process(code) == ("False", "")


def test_where_nothing_can_be_kept_on_the_disk_it_is_compiled_all_the_same():
    # What numba finds where neither the folder of the file nor the user's can be written: no place.
    code = (
        "from numba.core import caching; caching.CacheImpl._locator_classes = []; "
        "import numpy as np; from envs import kernel, philox; words = np.empty((4, 3), np.uint32); "
        "kernel.philox(np.arange(3, dtype=np.int32), 3, 7, (1, 2), 1, words); "
        "wanted = philox.words((1, 2), np.arange(3), np.full(3, 7), 1, 1); "
        "print((words == wanted).all(), kernel.philox.stats.cache_path)"
    )
    assert in_a_new_process(code) == ("True None", "")


def test_where_the_disk_is_full_it_is_compiled_all_the_same():
    code = (
        "import errno\n"
        "from numba.core import caching\n"
        "def full(self, name, data): raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "caching.IndexDataCacheFile.save = full\n"
        "caching.IndexDataCacheFile.load = lambda *_: None\n"
        "import numpy as np\n"
        "from envs import kernel, philox\n"
        "words = np.empty((4, 3), np.uint32)\n"
        "kernel.philox(np.arange(3, dtype=np.int32), 3, 7, (1, 2), 1, words)\n"
        "print((words == philox.words((1, 2), np.arange(3), np.full(3, 7), 1, 1)).all())\n"
    )
    assert in_a_new_process(code) == ("True", "")


def test_with_a_numba_that_does_not_work_numpy_goes_on(monkeypatch):
    def fails():
        raise ImportError("Numba needs NumPy 2.2 or less")

    monkeypatch.setattr("envs.compiled._kernel", lru_cache(fails))
    monkeypatch.setattr(module, "WORTH_COMPILING", 1)
    going_on, by_numpy = TreatmentVectorEnvV1(20), TreatmentVectorEnvV1(20, compiled=False)
    assert_same_stays(by_numpy, going_on, steps=4)
    with pytest.raises(ImportError, match="Numba needs NumPy"):
        TreatmentVectorEnvV1(20, compiled=True).reset()


def test_nobody_is_told_that_version_0_is_out_of_date():
    code = "import policysim, gymnasium; gymnasium.make('policysim/Treatment-v0').reset(); print('made')"
    assert in_a_new_process(code) == ("made", "")


def test_compiled_must_be_a_truth_value_or_none():
    with pytest.raises(ValueError, match=re.escape("compiled must be True, False or None, got compiled='yes'.")):
        TreatmentVectorEnvV1(2, compiled="yes")


def test_without_numba_it_says_what_to_install_and_numpy_goes_on(monkeypatch):
    monkeypatch.setattr("envs.compiled.find_spec", lambda _: None)
    with pytest.raises(ValueError, match=re.escape("needs numba: pip install 'policysim[fast]'")):
        TreatmentVectorEnvV1(2, compiled=True)
    assert not TreatmentVectorEnvV1(2)._may_compile


def test_a_scenario_of_too_many_outcomes_is_left_to_numpy(monkeypatch):
    assert ward_of("covid", 1).n_draws <= MOST_OUTCOMES
    monkeypatch.setattr("envs.compiled.MOST_OUTCOMES", 8)
    with pytest.raises(ValueError, match="the scenario has 9 outcomes, and compiled code can treat at most 8"):
        TreatmentVectorEnvV1(2, compiled=True)
    assert not TreatmentVectorEnvV1(2)._may_compile


def test_a_pass_holds_the_patients_that_it_was_given():
    ward = ward_of("covid", 3)
    codes = ward.arrivals.admit(np.random.default_rng(0).random(500))
    days = np.arange(500) % 3
    payoff = Payoff(ward.scenario, utility_of(ward.scenario, None))
    compiled = Pass(ward, payoff, codes=codes, days=days, over=days == 2)
    assert np.array_equal(compiled.observe(), ward.observe(codes, days))
