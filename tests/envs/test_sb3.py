"""The vector environment for Stable-Baselines3, whose own one stepped the same patient (`make oracles`)."""

import json
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]
LANGUAGE = ROOT / "tests" / "envs" / "data" / "language.toml"


class Base:
    """As much of the library's class as ours calls."""

    def __init__(self, num_envs, observation_space, action_space):
        self.num_envs, self.observation_space, self.action_space = num_envs, observation_space, action_space
        self._reset_seeds()
        self._reset_options()
        (self.render_mode,) = set(self.get_attr("render_mode"))

    def _reset_seeds(self):
        self._seeds = [None] * self.num_envs

    def _reset_options(self):
        self._options = [{}] * self.num_envs

    def seed(self, seed):
        self._seeds = [seed + place for place in range(self.num_envs)]

    def _get_indices(self, indices):
        return range(self.num_envs) if indices is None else [indices] if isinstance(indices, int) else indices

    def step(self, actions):
        self.step_async(actions)
        return self.step_wait()


@pytest.fixture
def vec_env(monkeypatch):
    name = "stable_baselines3.common.vec_env"
    module = ModuleType(name)
    module.VecEnv = Base
    for part in ("stable_baselines3", "stable_baselines3.common"):
        monkeypatch.setitem(sys.modules, part, ModuleType(part))
    monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.delitem(sys.modules, "envs.sb3", raising=False)
    yield import_module("envs.sb3").TreatmentVecEnv
    del sys.modules["envs.sb3"]


def test_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    with pytest.raises(ImportError, match=r"envs\.sb3 needs stable-baselines3: pip install stable-baselines3"):
        import_module("envs.sb3")


def test_a_patients_stays_are_those_of_the_librarys_own_vector_environment(vec_env, monkeypatch):
    document = json.loads((ROOT / "tests" / "oracles" / "stable-baselines3.json").read_text(encoding="utf-8"))
    assert document["command"] == "make oracles"
    assert {"python", "stable-baselines3", "sb3-contrib", "torch"} <= document["versions"].keys()
    given, found = document["given"], document["found"]
    monkeypatch.chdir(ROOT)
    env = vec_env(1, scenario=given["scenario"], horizon=given["horizon"])
    env.seed(given["seed"])
    assert env.reset().tolist() == found["first"]
    for action, (seen, rewards, ended, info) in zip(given["actions"], found["steps"], strict=True):
        now = env.step(np.array(action))
        assert [each.tolist() for each in now[:3]] == [seen, rewards, ended]
        assert now[1].dtype == np.float32
        told = dict(now[3][0])
        assert told.pop("terminal_observation", np.array([])).tolist() == info.pop("terminal_observation", [])
        assert told == info
    assert sum(ended for *_, (ended,), _ in found["steps"]) > 10
    assert found["learnt"]["PPO"] == {"steps": 1024, "longest": 5, "shortest": 1}
    assert found["learnt"]["MaskablePPO"] == {"steps": 1024, "longest": 3, "shortest": 1}


def test_each_patient_has_a_row_of_the_masks(vec_env):
    env = vec_env(50, scenario=str(LANGUAGE), horizon=3)
    env.seed(1)
    env.reset()
    rng = np.random.default_rng(0)
    for _ in range(10):
        masks = np.stack(env.env_method("action_masks"))
        assert masks.shape == (50, env.action_space.n)
        assert masks.dtype == bool and not masks.all()
        assert np.array_equal(np.stack(env.env_method("action_masks", indices=[7, 2])), masks[[7, 2]])
        env.step((rng.random(masks.shape) * masks).argmax(axis=1))  # one that is not allowed would be refused
    assert env.get_attr("num_envs", indices=3) == [50]


def test_seeds_and_options_hold_for_the_next_reset(vec_env):
    env = vec_env(200, horizon=3)
    env._options = [{"where": {"fever": 1}}] * 200
    env.seed(5)
    ill = env.reset()
    fever = env._patients.ward.scenario.space.axis("fever")
    assert (ill[:, fever] == 1).all()
    assert [told["day"] for told in env.reset_infos] == [0] * 200
    assert (env.reset()[:, fever] == 0).any()
    env._options = [{"where": {"fever": 1}}] * 200
    env.seed(5)
    assert np.array_equal(env.reset(), ill)
    env._options[3] = {"where": {"fever": 0}}
    with pytest.raises(ValueError, match="options must be the same for all patients"):
        env.reset()


def test_what_patients_share_is_asked_and_not_set(vec_env):
    env = vec_env(3, render_mode="ansi", horizon=2)
    env.reset()
    assert env.render_mode == "ansi"
    assert env.get_attr("action_space", indices=[0, 2]) == [env.action_space] * 2
    assert env.env_is_wrapped(dict) == [False] * 3
    assert all(chart.endswith("admitted") for chart in env.env_method("render"))
    with pytest.raises(AttributeError):
        env.get_attr("nothing")
    with pytest.raises(ValueError, match="horizon cannot be set"):
        env.set_attr("horizon", 3)
    with pytest.raises(ValueError, match="env_method must be 'action_masks' or 'render', got 'close'"):
        env.env_method("close")
    env.close()
