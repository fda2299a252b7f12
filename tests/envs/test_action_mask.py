"""Contraindications in the environments: what the mask says, what is refused, and that all of it is exact."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from brute_force import ByHand
from gymnasium.spaces import Discrete
from gymnasium.utils.env_checker import check_env, data_equivalence
from vector_pair import assert_same

import envs
import policysim  # noqa: F401 - registers the environments
from envs.backup import Backup
from envs.treatment import TreatmentEnv
from envs.treatment_response import Course
from envs.treatment_vector import TreatmentVectorEnv
from policysim.study.study_problem import expected_utilities
from policysim.utility import Utility

ID = "policysim/Treatment-v1"
LANGUAGE = str(Path(__file__).parent / "data" / "language.toml")


@pytest.fixture(scope="module")
def language():
    return envs.load_scenario(LANGUAGE)


@pytest.fixture(scope="module")
def by_hand(language):
    return ByHand(language, 1)


def allowed_draw(mask, rng):
    """An action of each row that its mask allows, at random."""
    return (rng.random(mask.shape) * mask).argmax(axis=1)


def test_the_mask_of_a_step_is_that_of_the_record_it_returns(language, by_hand):
    env, records = TreatmentEnv(LANGUAGE, horizon=4), list(by_hand.records())
    rng = np.random.default_rng(0)
    for seed in range(30):
        _, info = env.reset(seed=seed)
        over = False
        while not over:
            action = int(allowed_draw(info["action_mask"][None], rng)[0])
            observation, _, over, _, info = env.step(action)
            values = records[language.space.indices(observation[None, :-1])[0]]
            assert info["action_mask"].tolist() == [by_hand.allowed(values, name) for name in language.actions]


@pytest.mark.parametrize(
    ("record", "action", "message"),
    [
        (
            {"pregnancy": 1, "fever": 1},
            1,
            "action must be allowed: antiviral is contraindicated for this patient (pregnancy); "
            "allowed: 0 (none), 2 (heparin), got action=1.",
        ),
        (
            {"asthma": 1, "age": "old", "clots": 1},
            3,
            "action must be allowed: both is contraindicated for this patient (age old, asthma); "
            "allowed: 0 (none), 2 (heparin), got action=3.",
        ),
        (
            {"fever": 1},
            3,
            "action must be allowed: both is contraindicated for this patient (not clots, fever); "
            "allowed: 0 (none), 1 (antiviral), 2 (heparin), got action=3.",
        ),
    ],
)
def test_a_refusal_names_the_treatment_the_condition_and_what_is_allowed(record, action, message):
    one, many = TreatmentEnv(LANGUAGE), TreatmentVectorEnv(3, LANGUAGE)
    one.reset(options={"record": record})
    with pytest.raises(ValueError) as error:
        one.step(action)
    assert str(error.value) == message
    many.reset(options={"record": {}})
    many.reset(options={"record": record, "reset_mask": np.array([False, True, True])})
    with pytest.raises(ValueError) as error:
        many.step([0, action, action])
    assert str(error.value) == message.replace("action must", "actions[1] must").replace("got action", "got actions[1]")


@pytest.mark.parametrize("horizon", [1, 6])
def test_gymnasiums_checker_has_nothing_to_say(horizon):
    env = gymnasium.make(ID, scenario=LANGUAGE, horizon=horizon).unwrapped

    class NoTreatment(Discrete):
        """The checker draws actions without a mask: everybody may get the first."""

        def sample(self, *_, **__):
            return np.int64(0)

    env.action_space = NoTreatment(4)
    check_env(env)


def test_the_first_allowed_treatment_stands_in_for_one_that_is_not():
    one, many = (
        TreatmentEnv(LANGUAGE, inadmissible="first-allowed"),
        TreatmentVectorEnv(2, LANGUAGE, inadmissible="first-allowed"),
    )
    refusing = TreatmentVectorEnv(2, LANGUAGE)
    record = {"pregnancy": 1, "fever": 1}  # neither antiviral nor both
    for env in (one, many, refusing):
        env.reset(seed=4, options={"record": record})
    assert one.action_masks().tolist() == [True, False, True, False]
    assert many.action_masks().tolist() == [[True, False, True, False]] * 2
    wanted = refusing.step([2, 0])
    assert_same(many.step([2, 3])[:4], wanted[:4])
    env = TreatmentEnv(LANGUAGE, inadmissible="first-allowed")
    env.reset(seed=4, options={"record": record})
    assert data_equivalence(env.step(0), one.step(1), exact=True)
    with pytest.raises(ValueError, match="inadmissible must be one of 'raise', 'first-allowed', got 'ignore'"):
        TreatmentEnv(inadmissible="ignore")


def test_where_nothing_is_contraindicated_everything_is_allowed_and_there_is_no_mask():
    one, many = TreatmentEnv("covid"), TreatmentVectorEnv(3)
    assert "action_mask" not in one.reset(seed=0)[1]
    many.reset(seed=0)
    assert one.action_masks().dtype == bool and one.action_masks().shape == (4,) and one.action_masks().all()
    assert many.action_masks().shape == (3, 4) and many.action_masks().all()
    assert "action_mask" not in one.step(0)[4]
    assert envs.ResponseModel(envs.load_scenario("covid")).admissible is None


def test_the_action_space_draws_by_the_mask():
    env = gymnasium.make(ID, scenario=LANGUAGE)
    _, info = env.reset(seed=0, options={"record": {"pregnancy": 1}})
    env.action_space.seed(0)
    assert {int(env.action_space.sample(info["action_mask"])) for _ in range(50)} == {0, 2}


def test_rewards_are_what_came_and_what_the_treatment_costs_this_patient(language):
    n, rng = 1_000, np.random.default_rng(1)
    env = TreatmentVectorEnv(n, LANGUAGE, autoreset_mode="Disabled")
    observations, info = env.reset(seed=0)
    records, actions = language.space.indices(observations), allowed_draw(info["action_mask"], rng)
    assert envs.ResponseModel(language).admissible[records, actions].all()
    _, rewards, *_, info = env.step(actions)
    happened = np.column_stack([info["outcome"][name] for name in language.outcomes])
    utility = Utility.of(language).realized(language, happened, actions, records)
    assert np.abs(utility - rewards).max() <= 1e-12
    assert len(np.unique(rewards)) > 10


def test_costs_that_depend_on_the_record_ask_for_it(language):
    with pytest.raises(ValueError, match="the costs of this scenario depend on the record: give records"):
        Utility.of(language).realized(language, np.zeros((1, 6)), [1])


def test_stays_of_several_days_have_the_exact_value(language):
    horizon, n = 3, 200_000
    course = Course(envs.ResponseModel(language), horizon)
    policy = course.response.admissible / course.response.admissible.sum(axis=1, keepdims=True)
    rewards, backup = expected_utilities(course.response, Utility.of(language)), Backup(course)
    value = np.zeros(language.space.size)
    for _ in range(horizon):
        value = (policy * (rewards + backup.continuation(value))).sum(axis=1)
    env, rng = TreatmentVectorEnv(n, LANGUAGE, horizon=horizon, autoreset_mode="Disabled"), np.random.default_rng(4)
    _, info = env.reset(seed=11)
    returns = np.zeros(n)
    for _ in range(horizon):
        _, gained, *_, info = env.step(allowed_draw(info["action_mask"], rng))
        returns += gained
    error = returns.std() / np.sqrt(n)
    assert abs(returns.mean() - envs.prior(language) @ value) <= 4 * error
    # It could tell the value from others.
    assert 4 * error <= 0.05 * np.ptp(value)
