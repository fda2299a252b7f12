"""What d3rlpy reads of the arrays of examples/offline_data.py, and that it learns from them: part of `make oracles`.

d3rlpy wants an older gymnasium than this project, so it has an environment of its own, and only arrays reach it.
"""

import d3rlpy
import numpy as np
from fixture_file import STAYS, write

SEED, STEPS = 0, 20

if __name__ == "__main__":
    d3rlpy.seed(SEED)
    rows = np.load(STAYS / "stays.npz")
    read = d3rlpy.dataset.MDPDataset(
        rows["observations"].astype(np.float32),
        rows["actions"],
        rows["rewards"],
        rows["terminals"].astype(np.float32),
        action_space=d3rlpy.ActionSpace.DISCRETE,
    )
    agent = d3rlpy.algos.DiscreteCQLConfig(gamma=1.0).create(device="cpu:0")
    silent = d3rlpy.logging.NoopAdapterFactory()
    agent.fit(read, n_steps=STEPS, n_steps_per_epoch=STEPS, logger_adapter=silent, show_progress=False)
    chosen = agent.predict(np.unique(rows["observations"], axis=0).astype(np.float32))
    found = {
        "lengths": [len(episode) for episode in read.episodes],
        "returns": [float(episode.compute_return()) for episode in read.episodes],
        "features": int(read.dataset_info.observation_signature.shape[0][0]),
        "actions": read.dataset_info.action_size,
        "chosen": sorted(set(chosen.tolist())),
    }
    write("d3rlpy", ["d3rlpy", "gymnasium", "torch", "numpy"], {"seed": SEED, "steps": STEPS}, found)
