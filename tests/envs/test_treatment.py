"""The environment of one patient."""

import copy
import inspect
import math
import pickle
import re
import warnings
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from brute_force import scenario
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env, data_equivalence

import envs
import policysim  # noqa: F401 - registers the environments
from envs.inpatients import Patients
from envs.scenario import with_utility
from envs.treatment import TreatmentEnv
from envs.treatment_vector import TreatmentVectorEnv
from envs.ward import ward_of
from policysim.study.environment import without_study
from policysim.utility import Utility

ID = "policysim/Treatment-v1"
LANGUAGE = Path(__file__).parent / "data" / "language.toml"
SICK = {"covid_positive": 1, "fever": 1, "pneumonia": 1, "blood_clots": 1, "age": "60-79"}


def stay(env, *, seed=None, policy=None, options=None):
    """A whole stay: the results of reset and of every step."""
    rng = np.random.default_rng(0)
    results = [env.reset(seed=seed, options=options)]
    while len(results) == 1 or not results[-1][2]:
        results.append(env.step(int(rng.integers(env.action_space.n)) if policy is None else policy))
    return results


@pytest.mark.parametrize("horizon", [1, 14])
@pytest.mark.parametrize("render_mode", [None, "ansi"])
def test_gymnasiums_checker_has_nothing_to_say(horizon, render_mode):
    check_env(gymnasium.make(ID, horizon=horizon, render_mode=render_mode).unwrapped)


@pytest.mark.parametrize("horizon", [1, 14])
def test_gymnasiums_checker_says_of_the_wrapped_one_only_that_it_is_wrapped(horizon):
    env = gymnasium.make(ID, horizon=horizon)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        check_env(env)
    assert len(said) == 1
    assert "is different from the unwrapped version" in str(said[0].message)


def test_the_checker_would_notice_observations_of_another_type(monkeypatch):
    treat = Patients.treat

    def treat_in_floats(*given, **named):
        seen, *others = treat(*given, **named)
        return seen * 1.0, *others

    monkeypatch.setattr(Patients, "treat", treat_in_floats)
    with pytest.raises(AssertionError, match="not within the observation space"):
        check_env(gymnasium.make(ID).unwrapped)


# Spaces and what is returned.


def test_the_observation_is_the_record_and_the_day(covid):
    one, many = TreatmentEnv(), TreatmentEnv(horizon=14)
    assert one.action_space == gymnasium.spaces.Discrete(4)
    assert one.observation_space == gymnasium.spaces.MultiDiscrete(covid.space.shape, dtype=np.int16)
    assert many.observation_space == gymnasium.spaces.MultiDiscrete([*covid.space.shape, 15], dtype=np.int16)
    observation, info = many.reset(options={"record": SICK})
    assert observation.tolist() == [*covid.space.codes([covid.space.record(SICK)])[0].tolist(), 0]
    assert info == {"day": 0, "outcome": dict.fromkeys(covid.outcomes, False)}
    assert many.step(0)[0][-1] == 1


def test_rewards_and_ends_are_plain_python(chain_path):
    for _, reward, terminated, truncated, info in stay(TreatmentEnv(chain_path, horizon=5), seed=1)[1:]:
        assert type(reward) is float
        assert type(terminated) is bool
        assert truncated is False
        assert type(info["day"]) is int
        assert {type(happened) for happened in info["outcome"].values()} == {bool}


def test_the_docstring_names_what_info_holds_and_every_argument(covid):
    text = inspect.getdoc(TreatmentEnv)
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings == [
        "Description", "Action Space", "Observation Space", "Rewards", "Starting State", "Episode End", "Information",
        "Arguments", "Version History",
    ]  # fmt: skip
    sections = dict(zip(headings, re.split(r"^## .*$", text, flags=re.MULTILINE)[1:], strict=True))
    for env in (TreatmentEnv(), TreatmentEnv(str(LANGUAGE))):
        keys = re.findall(r"^- `(\w+)`", sections["Information"], re.MULTILINE)
        for result in stay(env, seed=0, policy=0):
            assert list(result[-1]) == keys[: 3 if env.ward.forbids else 2]
    # A study is for `gymnasium.make`.
    arguments = list(inspect.signature(TreatmentEnv).parameters)
    assert list(inspect.signature(without_study).parameters)[:2] == [arguments[0], "study"]
    assert re.findall(r"^- `(\w+)`", sections["Arguments"], re.MULTILINE) == [arguments[0], "study", *arguments[1:]]
    actions = re.findall(r"^\| (\d) \| (\w+) \| ([\w -]+) \|$", sections["Action Space"], re.MULTILINE)
    titles = [(str(i), name, treatment.title) for i, (name, treatment) in enumerate(covid.treatments.items())]
    assert actions == titles


def test_nothing_that_was_returned_can_change_what_comes():
    left_alone, tampered = TreatmentEnv(horizon=14), TreatmentEnv(horizon=14)
    expected = stay(left_alone, seed=3, policy=0, options={"record": SICK})
    results = [tampered.reset(seed=3, options={"record": dict(SICK)})]
    for wanted in expected:
        observation, info = results[-1][0], results[-1][-1]
        assert data_equivalence((observation, info), (wanted[0], wanted[-1]), exact=True)
        observation[:] = 1
        info.get("outcome", {}).clear()
        info.clear()
        if not tampered._patients.places.over[0]:
            results.append(tampered.step(0))
    assert len(expected) > 3


# What happens.


def test_a_stay_ends_by_death_recovery_or_on_the_last_day_and_not_before(chain_path):
    env, horizon, ends = TreatmentEnv(chain_path, horizon=4), 4, set()
    flags = [0, 2, 3]  # cough, fever and infected in the record
    for seed in range(200):
        for day, (observation, _, terminated, _, info) in enumerate(stay(env, seed=seed)[1:], start=1):
            outcome = info["outcome"]
            died, recovered = outcome["death"], not any(outcome[flag] for flag in ("cough", "fever", "infected"))
            assert info["day"] == day == observation[-1]
            assert terminated == (died or recovered or day == horizon)
            if terminated:
                ends.add((died, recovered, day == horizon))
                # The evening's record: there is no night any more.
                assert observation[flags].tolist() == [outcome[flag] for flag in ("cough", "fever", "infected")]
    assert len({(died, recovered) for died, recovered, _ in ends}) == 4
    assert {last for *_, last in ends} == {True, False}


def test_the_reward_is_the_realised_utility(covid):
    changed = {"weights": {"death": 7.5, "taste": 0.0}, "costs": {"a0": -1.0}}
    utility, n = Utility.of(with_utility(covid, changed)), 500
    env, actions = TreatmentVectorEnv(n, utility=changed, autoreset_mode="Disabled"), np.arange(n) % 4
    env.reset(seed=1, options={"where": {"fever": 1, "covid_positive": 1}})
    _, rewards, *_, infos = env.step(actions)
    outcomes = np.column_stack([infos["outcome"][name] for name in covid.outcomes])
    assert np.abs(rewards - utility.realized(covid, outcomes, actions)).max() <= 1e-12
    by_hand = -1.0 * outcomes @ [utility.weights[name] for name in covid.outcomes]
    by_hand -= np.array([utility.costs[name] for name in covid.actions])[actions]
    assert np.abs(rewards - by_hand).max() <= 1e-12
    assert len(np.unique(rewards)) > 10


def test_values_that_the_user_gives_replace_only_those_that_they_name(covid):
    changed = with_utility(covid, {"weights": {"fever": 3}, "costs": {"a1": -2}})
    assert changed.weights == {**covid.weights, "fever": 3.0}
    assert Utility.of(changed).costs == {**Utility.of(covid).costs, "a1": -2.0}
    assert with_utility(covid, None) == with_utility(covid, {}) == covid


# Random numbers.


def test_a_seed_takes_one_random_number_and_nothing_else_does():
    env, rng = TreatmentEnv(horizon=14), np.random.default_rng(0)
    env.np_random = np.random.default_rng(0)
    rng.integers(1 << 64, dtype=np.uint64)
    for options in (None, {"record": SICK}, {"where": SICK}):
        env.reset(options=options)
        env.step(1)
        if options is None:
            assert env.np_random.bit_generator.state != np.random.default_rng(0).bit_generator.state
            state = env.np_random.bit_generator.state
        assert env.np_random.bit_generator.state == state


# Who comes.


def test_those_who_come_are_the_cohort_or_those_of_it_who_meet_a_condition(covid, too_far):
    prior, n = envs.prior(covid), 200_000
    many = TreatmentVectorEnv(n, autoreset_mode="Disabled")
    where = {"age": ["60-79", "80+"], "covid_positive": 1}
    meets = np.ones(covid.space.size, dtype=bool)
    for name, levels in where.items():
        known = covid.space.feature(name).levels
        meets &= np.isin(covid.space.groups(name)[0], [known.index(level) for level in np.atleast_1d(levels)])
    for options, chances in ((None, prior), ({"where": where}, prior * meets / prior[meets].sum())):
        records = covid.space.indices(many.reset(seed=3, options=options)[0])
        assert meets[records].all() == (options is not None)
        # By blocks of records: most records are too rare.
        counts, expected = (
            np.add.reduceat(each, np.arange(0, len(prior), 4096))
            for each in (np.bincount(records, minlength=len(prior)), n * chances)
        )
        assert not too_far(counts, expected)
        assert too_far(counts, np.roll(expected, 1))


def test_one_who_meets_a_condition_is_the_vectors_first_place():
    one, many = TreatmentEnv(), TreatmentVectorEnv(1, autoreset_mode="Disabled")
    for options in ({"where": {"fever": 1}}, None, {"where": {"fever": [0]}}):
        assert np.array_equal(one.reset(seed=5, options=options)[0], many.reset(seed=5, options=options)[0][0])


# Copies.


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_as_the_original_and_shares_what_never_changes(copied):
    env = TreatmentEnv(horizon=14, render_mode="ansi")
    env.reset(seed=3, options={"record": SICK})
    env.step(0)
    other = copied(env)
    assert other.ward is env.ward
    results = [env.step(0)]
    while not results[-1][2]:
        results.append(env.step(0))
    assert len(results) > 2
    assert data_equivalence([other.step(0) for _ in results], results, exact=True)
    assert other.render() == env.render()


def test_a_thousand_environments_share_the_tables():
    assert len({id(TreatmentEnv(horizon=14).ward) for _ in range(1_000)}) == 1
    assert ward_of("covid", 14).sampler is ward_of("covid", 3).sampler
    assert ward_of("covid", 14, {"weights": {"fever": 3}}) is not ward_of("covid", 14)


def test_a_scenario_file_that_has_changed_is_read_again(tmp_path):
    scenario("chain", tmp_path)
    path = tmp_path / "chain.toml"
    before = ward_of(str(path), 2)
    path.write_text(path.read_text().replace("death = 10", "death = 20"))
    import os  # noqa: PLC0415

    os.utime(path, ns=(1, 1))  # clocks of file systems are coarse
    assert before.scenario.weights["death"] == 10
    assert ward_of(str(path), 2).scenario.weights["death"] == 20


# Mistakes.


@pytest.mark.parametrize("action", [4, -1, True, 1.0, "a1", None, np.float64(1), np.bool_(True), np.array([1])])
def test_an_action_that_is_no_treatment_is_refused(action):
    env = TreatmentEnv()
    env.reset(seed=0)
    allowed = re.escape("action must be a whole number from 0 to 3 (a0, a1, a2, a3), got action=")
    with pytest.raises(ValueError, match=allowed + re.escape(repr(action))):
        env.step(action)
    env.step(0)  # goes on unharmed


@pytest.mark.parametrize("action", [3, np.int64(3), np.uint8(3), np.array(3)])
def test_numpys_whole_numbers_are_actions(action):
    env = TreatmentEnv()
    env.reset(seed=0)
    env.step(action)


def test_a_step_needs_a_patient():
    env = TreatmentEnv(render_mode="ansi")
    with pytest.raises(ResetNeeded, match=re.escape("the stay has not begun: call reset() before step().")):
        env.step(0)
    with pytest.raises(ResetNeeded, match=re.escape("no patient yet: call reset() before render().")):
        env.render()
    env.reset(seed=0)
    env.step(0)
    with pytest.raises(ResetNeeded, match=re.escape("the stay has ended: call reset() before step().")):
        env.step(0)


@pytest.mark.parametrize("horizon", [0, -1, 1.5, 2.0, True, "14", None, [3], 32_767])
def test_a_horizon_must_be_a_whole_number_of_days(horizon):
    wanted = re.escape("horizon must be a whole number of days in [1, 32766], got horizon=")
    with pytest.raises(ValueError, match=wanted + re.escape(repr(horizon))):
        TreatmentEnv(horizon=horizon)


def test_the_longest_horizon_fits_the_observation(chain_path):
    env = TreatmentEnv(chain_path, horizon=32_766)
    assert env.observation_space.nvec[-1] == 32_767
    assert env.observation_space.contains(env.reset(seed=0)[0])


@pytest.mark.parametrize(
    ("utility", "message"),
    [
        ({"weight": {}}, "unknown part of utility 'weight'; did you mean 'weights'? known: weights, costs"),
        ({"weights": {"fewer": 1}}, "unknown outcome 'fewer'; did you mean 'fever'?"),
        ({"costs": {"a4": 1}}, "unknown action 'a4'"),
        ({"weights": {"fever": -1}}, "weights['fever'] must be a number >= 0 within ±1e+50, got -1."),
        ({"weights": {"fever": float("nan")}}, "weights['fever'] must be a number >= 0 within ±1e+50, got nan."),
        ({"costs": {"a1": float("inf")}}, "costs['a1'] must be a number within ±1e+50, got inf."),
        ({"costs": {"a1": True}}, "costs['a1'] must be a number within ±1e+50, got True."),
        ({"costs": [1]}, "costs must be a mapping, got [1]."),
        ("death", "utility must be a mapping, got 'death'."),
    ],
)
def test_values_that_make_no_utility_are_refused(utility, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        TreatmentEnv(utility=utility)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"patient": {}}, "unknown option 'patient'; known: record, where."),
        ({"where": {"fewer": 1}}, "unknown feature 'fewer'"),
        ({"where": {"age": ["60"]}}, "age must be one of"),
        ({"where": "fever"}, "options['where'] must map features to levels, got 'fever'."),
        ({"where": {"fever": []}}, "where must be met by somebody, got where={'fever': ()}."),
        ({"where": {}, "record": {}}, "options must have 'record' or 'where', got both."),
        ({"record": {"fewer": 1}}, "unknown feature 'fewer'"),
        ({"record": {"age": "60"}}, "age must be one of"),
        ({"record": 5}, "options['record'] must map features to levels, got 5."),
    ],
)
def test_options_that_make_no_patient_are_refused(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        TreatmentEnv().reset(options=options)


def test_unknown_scenarios_and_render_modes_are_refused():
    with pytest.raises(envs.InputFileError, match="unknown scenario 'flu'"):
        TreatmentEnv("flu")
    with pytest.raises(ValueError, match="render_mode must be None or one of 'ansi', got 'human'"):
        TreatmentEnv(render_mode="human")


def test_rendering_without_a_mode_says_how_to():
    env = TreatmentEnv()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="shows nothing without a render_mode"):
        assert env.render() is None


def test_nothing_happening_is_worth_0_and_not_minus_0():
    env = gymnasium.make("policysim:policysim/Treatment-v1")
    env.reset(seed=0, options={"record": {}})
    reward = env.step(0)[1]
    assert (reward, math.copysign(1, reward)) == (0, 1)
