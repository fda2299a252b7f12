"""Agents of Stable-Baselines3 as `make oracles` recorded them: what they say of each record of a ward."""

import json
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np

FILE = Path(__file__).parents[1] / "oracles" / "stable-baselines3.json"
RECORDED = json.loads(FILE.read_text(encoding="utf-8"))["found"]["agents"]


class Tensor:
    """As much of a tensor of torch as is asked for; NumPy cannot read one that has a gradient."""

    def __init__(self, data, *, attached=True, wide=False):
        self.data, self.attached, self.wide = np.asarray(data), attached, wide

    def detach(self):
        return Tensor(self.data, attached=False)

    def cpu(self):
        return self

    def double(self):
        return Tensor(self.data.astype(np.float64), attached=self.attached, wide=True)

    def numpy(self):
        assert not self.attached and self.wide
        return self.data

    def new_tensor(self, data):
        return Tensor(np.asarray(data, dtype=self.data.dtype), attached=False)

    def __array__(self, *_args, **_options):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")


class RecordedPolicy:
    """The policy of an agent: it looks observations up, and is asked in evaluation mode only."""

    def __init__(self, name):
        codes = np.array(RECORDED["codes"])
        self.observation_space = SimpleNamespace(shape=codes.shape[1:])
        self.training = True  # as it is when `learn` returns
        self._scores = dict(zip(map(tuple, codes.tolist()), RECORDED[name]["scores"], strict=True))

    def set_training_mode(self, mode):
        self.training = mode

    def obs_to_tensor(self, observations):
        assert isinstance(observations, np.ndarray)
        return Tensor(observations), observations.ndim == 2

    def _table(self, observations):
        assert not self.training and isinstance(observations, Tensor)
        return Tensor([self._scores[tuple(row)] for row in observations.data.tolist()])


class RecordedActor(RecordedPolicy):
    def get_distribution(self, observations):
        return SimpleNamespace(distribution=SimpleNamespace(probs=self._table(observations)))


class RecordedQNetwork(RecordedPolicy):
    def q_net(self, observations):
        return self._table(observations)


def recorded_agent(name):
    """An agent, "PPO" or "DQN", that has learnt."""
    return SimpleNamespace(policy={"PPO": RecordedActor, "DQN": RecordedQNetwork}[name](name))


def stand_in():
    """The modules by their names that have as much of Stable-Baselines3 as documentation imports."""
    modules = {name: ModuleType(name) for name in ("stable_baselines3", "envs.sb3")}
    learning = SimpleNamespace(learn=lambda _steps: recorded_agent("PPO"))
    modules["stable_baselines3"].PPO = lambda *_arguments, **_options: learning
    modules["envs.sb3"].TreatmentVecEnv = lambda *_arguments, **_options: None
    return modules
