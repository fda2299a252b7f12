"""The environments are registered whenever Gymnasium and policysim are both imported, and importing stays quick."""

import importlib
import json
import pickle
import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from brute_force import scenario
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector import AutoresetMode

import policysim
from policysim.study import registration

ID = "policysim/Treatment-v1"


def in_a_fresh_process(code):
    """Run code with warnings as errors; returns what it prints."""
    run = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


def test_it_can_be_made_in_a_fresh_process():
    code = f"""
import gymnasium
one = gymnasium.make("policysim:{ID}")
print(one.spec.id, one.reset(seed=0)[1]["day"], type(gymnasium.make_vec("policysim:{ID}", num_envs=3)).__name__)
"""
    assert in_a_fresh_process(code) == f"{ID} 0 TreatmentVectorEnv"


@pytest.mark.parametrize(
    "code",
    [
        "import policysim, gymnasium",
        "import gymnasium, policysim",
        "import policysim.cli.main, gymnasium",
    ],
)
def test_it_is_registered_whichever_is_imported_first(code):
    assert in_a_fresh_process(f"{code}; print({ID!r} in gymnasium.registry)") == "True"


def test_gymnasium_looks_as_if_it_had_been_imported_without_us():
    code = """
import sys
finders = list(sys.meta_path)
import policysim
assert len(sys.meta_path) == len(finders) + 1
import importlib.util
assert importlib.util.find_spec("gymnasium").origin.endswith("__init__.py")  # asking is not importing
assert len(sys.meta_path) == len(finders) + 1
import gymnasium, importlib.resources
assert sys.meta_path == finders
assert type(gymnasium.__loader__).__name__ == type(gymnasium.__spec__.loader).__name__ == "SourceFileLoader"
assert importlib.resources.files("gymnasium").joinpath("__init__.py").is_file()
"""
    in_a_fresh_process(code)


def test_without_gymnasium_policysim_can_be_imported():
    code = """
import sys
sys.modules["gymnasium"] = None
import policysim
try:
    import gymnasium
except ImportError:
    print("none")
"""
    assert in_a_fresh_process(code) == "none"


def test_registering_again_does_nothing():
    before = gymnasium.spec(ID)
    registration.register()
    importlib.reload(policysim)
    assert gymnasium.spec(ID) is before


@pytest.fixture
def arguments():
    return {"scenario": "covid", "utility": {"weights": {"death": 50}, "costs": {"a3": 1}}, "horizon": 3}


def test_its_specification_survives_json_and_pickle(arguments):
    spec = gymnasium.make(ID, render_mode="ansi", **arguments).spec
    for again in (EnvSpec.from_json(spec.to_json()), pickle.loads(pickle.dumps(spec))):
        assert again == spec
        one, other = gymnasium.make(spec), gymnasium.make(again)
        assert one.reset(seed=4)[0].tolist() == other.reset(seed=4)[0].tolist()
        assert one.step(3)[1] == other.step(3)[1]
        assert one.render() == other.render()


def test_the_vectors_specification_survives_json(arguments):
    env = gymnasium.make_vec(ID, num_envs=5, autoreset_mode="SameStep", **arguments)
    again = gymnasium.make_vec(EnvSpec.from_json(env.spec.to_json()))
    assert json.loads(env.spec.to_json())["kwargs"]["autoreset_mode"] == "SameStep"
    assert again.spec == env.spec
    assert again.num_envs == 5
    assert again.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert np.array_equal(again.reset(seed=1)[0], env.reset(seed=1)[0])


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_gymnasiums_own_vectors_run_it(mode, tmp_path):
    scenario("chain", tmp_path)
    # Workers that are spawned know nothing of what this process has imported.
    options = {"vector_kwargs": {"context": "spawn"}} if mode == "async" else {}
    path = str(tmp_path / "chain.toml")
    env = gymnasium.make_vec(ID, num_envs=2, vectorization_mode=mode, scenario=path, horizon=3, **options)
    try:
        observations, _ = env.reset(seed=0)
        assert observations.shape == (2, 5)
        *_, infos = env.step(np.array([0, 1]))
        assert infos["day"].tolist() == [1, 1]
    finally:
        env.close()
