"""The environment of many patients: against the one of one patient, in Gymnasium's own vector environment."""

import inspect
import re
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from brute_force import scenario
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers import vector as wrappers
from vector_pair import MODES, N, Pair, assert_same

import policysim  # noqa: F401 - registers the environments
from envs.treatment_vector import TreatmentVectorEnv

ID = "policysim/Treatment-v1"
LANGUAGE = str(Path(__file__).parent / "data" / "language.toml")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("horizon", [1, 5])
@pytest.mark.parametrize(("source", "compiled"), [("covid", False), ("chain", True), ("language", None)])
def test_it_is_gymnasiums_vector_of_single_ones_bit_by_bit(mode, horizon, source, compiled, chain_path):
    source = {"covid": "covid", "chain": chain_path, "language": LANGUAGE}[source]
    pair = Pair(mode, compiled, scenario=source, horizon=horizon, utility={"costs": {}})
    rng = np.random.default_rng(2)
    assert_same(*pair.reset())
    n_actions, over = pair.native.single_action_space.n, 0
    for step in range(30):
        actions = (rng.random((N, n_actions)) * pair.native.action_masks()).argmax(axis=1)
        if mode == "NextStep":
            actions[pair.over] = n_actions - 1  # ignored, whether it is allowed or not
        found, wanted = pair.step(actions)
        assert_same(found, wanted)
        over += int(found[2].sum())
        if mode == "Disabled" and found[2].any():
            assert_same(*pair.reset(mask=found[2], record={} if step % 5 == 0 else None))
        if step == 20:
            assert_same(*pair.reset())
    assert over > N


def test_a_patient_too_many_or_too_few_would_be_noticed(chain_path):
    pair = Pair("NextStep", scenario=chain_path, horizon=3)
    pair.reset()
    pair.native._patients.places.days[7] = 1  # one patient is a day ahead
    with pytest.raises(AssertionError):
        assert_same(*pair.step(np.zeros(N, dtype=int)))


def test_who_has_left_stays_as_he_is_until_the_next_reset():
    env = TreatmentVectorEnv(500, horizon=3, autoreset_mode="Disabled")
    env.reset(seed=0)
    before, _, over, _, infos = env.step(np.zeros(500, dtype=int))
    assert 0 < over.sum() < 500
    after, rewards, still, _, infos = env.step(np.ones(500, dtype=int))
    assert np.array_equal(after[over], before[over])
    assert (after[~over, -1] == 2).all()
    assert still[over].all()
    assert not rewards[over].any()
    assert not np.signbit(rewards[over]).any()
    assert not any(infos["outcome"][name][over].any() for name in ("taste", "death"))


def test_who_has_died_stays_dead_where_there_is_nothing_to_recover_from(tmp_path):
    scenario("hazards-alone", tmp_path)
    env = TreatmentVectorEnv(500, str(tmp_path / "hazards-alone.toml"), horizon=9, autoreset_mode="Disabled")
    env.reset(seed=0)
    over = np.zeros(500, dtype=bool)
    for _ in range(4):
        terminated = env.step(np.zeros(500, dtype=int))[2]
        assert terminated[over].all()
        over = terminated
    assert 0 < over.sum() < 500


# What it promises about itself.


@pytest.mark.parametrize("mode", [*MODES, *AutoresetMode])
def test_the_mode_is_in_the_metadata_of_this_environment_only(mode):
    env = TreatmentVectorEnv(2, autoreset_mode=mode)
    assert env.metadata["autoreset_mode"] is AutoresetMode(mode)
    assert TreatmentVectorEnv.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP
    assert TreatmentVectorEnv(2).metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("compiled", [False, True])
def test_nothing_that_was_returned_can_change_what_comes(mode, compiled):
    left_alone, tampered = (TreatmentVectorEnv(50, horizon=4, autoreset_mode=mode, compiled=compiled) for _ in range(2))

    def spoil(value):
        if isinstance(value, dict):
            for entry in value.values():
                spoil(entry)
            value.clear()
        elif isinstance(value, np.ndarray) and value.dtype != object:
            value[...] = 1 - value if value.dtype != bool else ~value

    wanted, found = left_alone.reset(seed=1), tampered.reset(seed=1)
    for step in range(6):
        assert data_equivalence(found, wanted, exact=True)
        for value in found:
            spoil(value)
        actions = np.full(50, step % 4)
        wanted, found = left_alone.step(actions), tampered.step(actions.copy())


def test_the_docstring_names_every_argument_and_mode():
    text = inspect.getdoc(TreatmentVectorEnv)
    arguments = text[text.index("## Arguments") : text.index("## Version History")]
    named = re.findall(r"`(\w+)`", " ".join(re.findall(r"^- (.*?):", arguments, re.MULTILINE)))
    assert sorted(named) == sorted([*inspect.signature(TreatmentVectorEnv).parameters, "study"])
    assert re.findall(r'^- `"(\w+)"`', text, re.MULTILINE) == MODES


# Wrappers of Gymnasium.


def test_gymnasiums_statistics_count_rewards_and_days():
    env = wrappers.RecordEpisodeStatistics(gymnasium.make_vec(ID, num_envs=30, horizon=5))
    env.reset(seed=0)
    total, length, idle = np.zeros(30), np.zeros(30), np.zeros(30, dtype=bool)
    for _ in range(12):
        _, rewards, over, _, infos = env.step(np.zeros(30, dtype=int))
        total, length = np.where(idle, 0, total + rewards), np.where(idle, 0, length + 1)
        if over.any():
            assert np.allclose(infos["episode"]["r"][over], total[over])
            assert np.array_equal(infos["episode"]["l"][over], length[over])
        idle = over
    assert env.episode_count > 30


def test_gymnasiums_observation_wrappers_work():
    env = gymnasium.make_vec(ID, num_envs=3, horizon=5)
    flat = wrappers.FlattenObservation(env)
    observations, _ = flat.reset(seed=0)
    assert observations.shape == flat.observation_space.shape
    env = wrappers.DtypeObservation(gymnasium.make_vec(ID, num_envs=3, horizon=5), np.int64)
    assert env.reset(seed=0)[0].dtype == np.int64
    assert env.step(np.zeros(3, dtype=int))[0].dtype == np.int64


# Mistakes.


@pytest.mark.parametrize(
    ("actions", "message"),
    [
        ([0, 4, 0], "actions must be whole numbers from 0 to 3 (a0, a1, a2, a3), got actions[1]=4."),
        ([0, 0, -1], "got actions[2]=-1."),
        ([0, 0], "actions must be whole numbers of shape (3,), got int64 of shape (2,)."),
        ([0.0, 1.0, 2.0], "got float64 of shape (3,)."),
        ([True, False, True], "got bool of shape (3,)."),
        (0, "got int64 of shape ()."),
    ],
)
def test_actions_that_are_no_treatments_are_refused(actions, message):
    env = TreatmentVectorEnv(3)
    env.reset(seed=0)
    with pytest.raises(ValueError, match=re.escape(message)):
        env.step(np.array(actions))


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.int32, np.uint64])
def test_whole_numbers_of_any_size_are_actions(dtype):
    env, other = TreatmentVectorEnv(4), TreatmentVectorEnv(4)
    env.reset(seed=0)
    other.reset(seed=0)
    assert data_equivalence(env.step(np.arange(4, dtype=dtype)), other.step([0, 1, 2, 3]), exact=True)


@pytest.mark.parametrize("mask", [[True, False], np.ones(3), np.ones(2, dtype=bool), np.zeros(3, dtype=bool)])
def test_a_mask_that_is_none_is_refused(mask):
    env = TreatmentVectorEnv(3, autoreset_mode="Disabled")
    with pytest.raises(ValueError, match=r"options\['reset_mask'\] must be"):
        env.reset(options={"reset_mask": mask})


def test_a_mask_is_not_taken_out_of_the_users_options():
    env, options = TreatmentVectorEnv(2, autoreset_mode="Disabled"), {"reset_mask": np.array([True, False])}
    _, infos = env.reset(options=options)
    assert list(options) == ["reset_mask"]
    assert infos["_day"].tolist() == [True, False]


def test_a_step_needs_all_patients():
    env = TreatmentVectorEnv(2, render_mode="ansi", autoreset_mode="Disabled")
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step([0, 0])
    env.reset(options={"reset_mask": np.array([True, False])})
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step([0, 0])
    with pytest.raises(ResetNeeded, match="call reset"):
        env.render()


@pytest.mark.parametrize("number", [0, -1, 1.0, True, None])
def test_there_must_be_patients(number):
    with pytest.raises(ValueError, match=re.escape(f"num_envs must be a whole number >= 1, got num_envs={number!r}.")):
        TreatmentVectorEnv(number)


def test_an_unknown_autoreset_mode_is_refused():
    wanted = "autoreset_mode must be one of 'NextStep', 'SameStep', 'Disabled', got 'NEXT_STEP'."
    with pytest.raises(ValueError, match=re.escape(wanted)):
        TreatmentVectorEnv(2, autoreset_mode="NEXT_STEP")
