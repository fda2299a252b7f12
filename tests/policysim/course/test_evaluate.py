"""A policy in an environment: means beside exact values, in every kind of environment, for every kind of policy."""

from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from small_studies import STUDY, WITH_ONSET, write_small_study

import policysim as ps
from policies import AnyRecord, DecisionProblem, make_policy

ID = "policysim:policysim/Treatment-v1"
MODES = [mode.value for mode in AutoresetMode]
LANGUAGE = Path(__file__).parents[2] / "envs" / "data" / "language.toml"
# Seeds are fixed; one normal mean in 150,000 is further off.
MOST = 4.5


@pytest.fixture(scope="module")
def priced(tmp_path_factory):
    """A study whose deaths count more than its scenario's, and whose pill costs less."""
    study = STUDY + "\n[utility]\nweights = { death = 40 }\ncosts = { pill = 0 }\n"
    return ps.load_study(write_small_study(tmp_path_factory.mktemp("priced"), study=study, scenario=WITH_ONSET))


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    """A study with contraindications: by pregnancy and by fever, which are public."""
    folder = tmp_path_factory.mktemp("masked")
    (folder / "language.toml").write_bytes(LANGUAGE.read_bytes())
    public = ps.load_scenario(LANGUAGE).contraindication_features
    (folder / "study.toml").write_text(f'scenario = "language.toml"\n[privacy]\npublic = {list(public)}\n')
    return ps.load_study(folder / "study.toml")


def fitted(study, epsilon=1.0):
    return make_policy("exponential", epsilon=epsilon).fit(ps.build_problem(study))


def agrees(table):
    """Whether all means are near what is exact, which is known."""
    return table["exact"].notna().all() and (table["errors_apart"] <= MOST).all() and table["standard_error"].any()


class Alternating(gymnasium.Env):
    """Episodes of 1 and of 10 steps in turn; each step pays 1, and is late if it is not the first."""

    observation_space = Discrete(11)
    action_space = Discrete(2)

    def __init__(self):
        self.episode, self.steps = -1, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episode, self.steps = self.episode + 1, 0
        return 0, {"outcome": {"late": False}}

    def step(self, action):
        assert action == self.steps % 2
        self.steps += 1
        over = self.steps == (10 if self.episode % 2 else 1)
        return self.steps, 1.0, over, False, {"outcome": {"late": self.steps > 1}}


@pytest.mark.parametrize("name", ["study", "priced", "masked"])
def test_the_exact_values_of_one_day_are_those_of_the_fitted_policy(name, request):
    study = request.getfixturevalue(name)
    policy = fitted(study)
    env = gymnasium.make(ID, study=study)
    exact = ps.evaluate(env, policy, episodes=2).set_index("quantity")["exact"]
    assert exact["return"] == pytest.approx(policy.value, rel=1e-12)
    for outcome in study.scenario.outcomes:
        assert exact[outcome] == pytest.approx(policy.expected[outcome], rel=1e-12)


def test_the_exact_values_over_days_are_those_of_the_process(study):
    policy = fitted(study)
    exact = ps.evaluate(gymnasium.make(ID, study=study, horizon=3), policy, episodes=2).set_index("quantity")["exact"]
    course = ps.build_course(study, 3, length_public=True)
    assert exact["return"] == pytest.approx(ps.policy_value(course, policy.probabilities), rel=1e-12)
    deaths = replace(course, rewards=course.outcomes["death"])
    assert exact["death"] == pytest.approx(ps.policy_value(deaths, policy.probabilities), rel=1e-12)


@pytest.mark.parametrize("horizon", [1, 4])
@pytest.mark.parametrize("name", ["priced", "masked"])
def test_means_are_near_what_is_exact_in_each_kind_of_environment(name, horizon, request):
    study = request.getfixturevalue(name)
    policy, arguments = fitted(study, epsilon=3), {"study": study, "horizon": horizon}
    environments = [
        gymnasium.make(ID, **arguments),
        *(gymnasium.make_vec(ID, num_envs=700, autoreset_mode=mode, **arguments) for mode in MODES),
    ]
    for number, env in enumerate(environments):
        found = ps.evaluate(env, policy, episodes=20_000 if number else 2_000, seed=number)
        assert found["quantity"].tolist() == ["return", *study.scenario.outcomes]
        assert agrees(found)


def test_an_id_of_ours_is_many_patients_but_for_a_function(covid_problem, monkeypatch):
    made, make_vec = [], gymnasium.make_vec
    monkeypatch.setattr(gymnasium, "make_vec", lambda *given, **named: made.append(named) or make_vec(*given, **named))
    policy = make_policy("exponential", epsilon=1).fit(covid_problem)
    found = ps.evaluate(ID, policy, episodes=30_000)
    assert agrees(found) and (found["episodes"] == 30_000).all() and len(made) == 1
    assert found["exact"][0] == pytest.approx(policy.value, rel=1e-9)
    shapes = []
    alone = ps.evaluate(ID, lambda observation: shapes.append(observation.shape) or 0, episodes=3)
    assert shapes == [(18,)] * 3 and len(made) == 1
    assert alone["exact"].isna().all() and alone["errors_apart"].isna().all()


@pytest.mark.parametrize("mode", ["one", *MODES])
def test_short_episodes_are_counted_no_more_often_than_long_ones(mode):
    one = mode == "one"
    env = Alternating() if one else SyncVectorEnv([Alternating] * 3, autoreset_mode=mode)
    found = ps.evaluate(env, lambda step: step % 2, episodes=8 if one else 12)
    assert found["quantity"].tolist() == ["return", "late"]
    assert found["mean"].tolist() == [5.5, 4.5]
    assert found["standard_error"].tolist() == pytest.approx(
        [np.std([1, 10] * n, ddof=1) / (2 * n) ** 0.5 for n in [4 if one else 6] * 2]
    )
    # The first place has one more.
    uneven = ps.evaluate(SyncVectorEnv([Alternating] * 3, autoreset_mode=MODES[0]), lambda step: step % 2, episodes=7)
    assert uneven["mean"].tolist() == pytest.approx([(4 * 1 + 3 * 10) / 7, 3 * 9 / 7])


def test_environments_of_others_without_outcomes():
    lake = gymnasium.make("FrozenLake-v1")
    mdp = ps.TabularMDP.from_env(lake)
    policy = make_policy("exponential", epsilon=20).fit(
        DecisionProblem(ps.plan(mdp).q_values, np.full(16, 1 / 16), AnyRecord())
    )
    value = ps.policy_value(mdp, policy.probabilities)
    for env in ("FrozenLake-v1", lake, gymnasium.make_vec("FrozenLake-v1", num_envs=7)):
        (row,) = ps.evaluate(env, policy, episodes=400).itertuples()
        assert row.quantity == "return" and np.isnan(row.exact)
        assert abs(row.mean - value) <= MOST * row.standard_error
    pole = ps.evaluate(
        gymnasium.make_vec("CartPole-v1", num_envs=4), lambda seen: (seen[:, 2] > 0).astype(int), episodes=40
    )
    assert 30 < pole["mean"].item() < 60


class Model:
    """In place of a model of Stable-Baselines3."""

    def __init__(self):
        self.asked = []

    def predict(self, observation, state=None, episode_start=None, deterministic=False):
        self.asked.append(deterministic)
        return np.asarray(observation)[..., 0] * 0, state


class Maskable(Model):
    """In place of one of sb3-contrib: the last treatment that is allowed."""

    def predict(self, observation, action_masks=None, deterministic=False):
        mask = np.asarray(action_masks)
        assert mask.shape[:-1] == observation.shape[:-1] and mask.any(axis=-1).all()
        return mask.shape[-1] - 1 - mask[..., ::-1].argmax(axis=-1), None


@pytest.mark.parametrize("deterministic", [True, False])
def test_a_model_predicts_in_one_and_in_many_and_by_id(study, deterministic):
    untreated = np.eye(3)[[0] * 32]
    value = ps.build_problem(study).value(untreated)
    for env, episodes in (
        (gymnasium.make(ID, study=study), 500),
        (gymnasium.make_vec(ID, num_envs=50, study=study), 20_000),
    ):
        model = Model()
        row = ps.evaluate(env, model, episodes=episodes, deterministic=deterministic).loc[0]
        assert abs(row["mean"] - value) <= MOST * row["standard_error"]
        assert set(model.asked) == {deterministic}
    model = Model()
    assert len(ps.evaluate(ID, model, episodes=100)) == 10 and len(model.asked) == 1


@pytest.mark.parametrize("mode", ["one", *MODES])
def test_what_a_patient_must_not_get_is_refused_and_a_model_is_shown_masks(masked, mode):
    def environment():
        if mode == "one":
            return gymnasium.make(ID, study=masked, horizon=3)
        return gymnasium.make_vec(ID, num_envs=40, study=masked, horizon=3, autoreset_mode=mode)

    last = len(masked.scenario.actions) - 1
    with pytest.raises(ValueError, match=r"must be allowed: .* is contraindicated for this patient"):
        ps.evaluate(environment(), lambda seen: last if mode == "one" else np.full(len(seen), last), episodes=400)
    ps.evaluate(environment(), Maskable(), episodes=400)
    assert agrees(ps.evaluate(environment(), fitted(masked), episodes=2_000))


def test_nothing_exact_is_claimed_of_another_environment(study, priced):
    policy = fitted(study)
    wrapped = gymnasium.wrappers.TransformReward(gymnasium.make(ID, study=study), lambda reward: 2 * reward)
    short = gymnasium.make(ID, study=study, horizon=3, max_episode_steps=1)
    for env in (wrapped, short):
        assert ps.evaluate(env, policy, episodes=2)["exact"].isna().all()
    # But of patients whom another study pays for differently.
    exact = ps.evaluate(gymnasium.make(ID, study=priced), policy, episodes=2)["exact"]
    utilities = ps.build_problem(priced).utilities
    assert exact[0] == pytest.approx(
        (policy.problem.prior[:, None] * policy.probabilities * utilities).sum(), rel=1e-12
    )


def test_a_seed_gives_the_same_numbers_and_patients_do_not_depend_on_the_policy(study):
    arrivals = []

    def recording(policy, rng):
        return lambda seen: arrivals.append(seen.copy()) or policy.act(seen, rng)

    policy, rng = fitted(study), np.random.default_rng(0)
    for chosen in (policy, make_policy("uniform").fit(policy.problem)):
        env = gymnasium.make_vec(ID, num_envs=20, study=study, autoreset_mode="Disabled")
        ps.evaluate(env, recording(chosen, rng), episodes=60, seed=3)
    assert len(arrivals) == 6
    assert all(np.array_equal(one, other) for one, other in zip(arrivals[:3], arrivals[3:], strict=True))
    one, same, other = (
        ps.evaluate(gymnasium.make_vec(ID, num_envs=20, study=study), policy, episodes=500, seed=seed)
        for seed in (1, 1, 2)
    )
    assert one.equals(same) and not one.equals(other)
    # Other patients come, whoever treats them.
    untreated = [ps.evaluate(gymnasium.make(ID, study=study), lambda _: 0, episodes=99, seed=seed) for seed in (1, 2)]
    assert not untreated[0].equals(untreated[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((ID, make_policy("uniform")), r"policy must be fitted first: policy.fit\(problem\), got policy="),
        ((ID, 3), "policy must be a fitted policy, a model with predict.*, or a function .*, got policy=3"),
        ((3, lambda _: 0), "env must be the id of an environment, an environment, or a vector one, got env=3"),
        ((ID, lambda _: 7), "action must be a whole number from 0 to 3"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_in_a_line(arguments, message):
    with pytest.raises(ValueError, match=message) as error:
        ps.evaluate(*arguments, episodes=2)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("episodes", [1, 2.5])
def test_fewer_than_two_episodes_are_refused(episodes):
    with pytest.raises(ValueError, match=f"episodes must be a whole number >= 2, .* got episodes={episodes!r}"):
        ps.evaluate(ID, lambda _: 0, episodes=episodes)


def test_a_policy_for_other_records_is_refused_by_their_features(study):
    with pytest.raises(ValueError, match=r"observations must be whole numbers, \(m, 5\): .* of shape \(2, 18\)"):
        ps.evaluate(ID, fitted(study), episodes=2)
