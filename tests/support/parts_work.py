"""Work on the parts of a log for tests, in a module that other processes can import; and a log in many files."""

import os
import signal
from pathlib import Path

import numpy as np
import pandas as pd

from policysim.logs.counted_log import count_part

ARMS = ("drip", "pill", "wait")
STUDY = """title = "a log in files"
[data]
file = "parts"
treatment = "arm"
propensity = "{propensity}"
outcome = {{ cured = 1.0 }}
missing = "exclude"
model = "{model}"
[data.treatments]
wait = "wait"
pill = "pill"
drip = "drip"
[data.features]
old = {{ levels = [0, 1] }}
ill = {{ levels = ["no", "little", "very"] }}
age = {{ cuts = [40, 60] }}
"""


def log_rows(n_rows=1200, seed=0, missing=0.01):
    """Rows of a trial: three features, an arm that depends on one of them, its probability, an outcome with gaps.

    Where ten outcomes or more of an arm are missing, whether they are is modelled, which takes a second for each log.
    """
    rng = np.random.default_rng(seed)
    old = rng.integers(2, size=n_rows)
    chances = np.where(old[:, None] == 1, [0.5, 0.25, 0.25], [0.2, 0.3, 0.5])
    arm = (rng.random(n_rows)[:, None] > chances.cumsum(axis=1)).sum(axis=1)
    cured = (rng.random(n_rows) < 0.4 + 0.2 * old * (arm == 0) + 0.1 * (arm == 1)).astype(float)
    cured[rng.random(n_rows) < missing] = np.nan
    return pd.DataFrame(
        {
            "old": old,
            "ill": np.array(["no", "little", "very"])[rng.integers(3, size=n_rows)],
            "age": rng.integers(18, 95, size=n_rows),
            "arm": np.array(ARMS)[arm],
            "chance": chances[np.arange(n_rows), arm],
            "cured": cured,
        }
    )


def write_parts(folder, frame, n_parts, ending="csv", *, propensity="chance", model="linear"):
    """The study of a log in so many files, in this folder; some of them are empty where there are more than rows."""
    (folder / "parts").mkdir(parents=True)
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), n_parts)):
        path, part = folder / "parts" / f"{number:04}.{ending}", frame.iloc[rows]
        part.to_csv(path, index=False) if ending == "csv" else part.to_parquet(path)
    study = folder / "study.toml"
    study.write_text(STUDY.format(propensity=propensity, model=model))
    return study


def bits(log):
    """All that is known of a log, as bytes."""
    data = log.data
    return [
        *(part.tobytes() for part in (data.actions, data.rewards, data.propensities, data.counts, log.records)),
        *(values.tobytes() for values in log.outcomes.values()),
        (data.names, log.missing, log.n_read, log.n_untreated),
    ]


def die_once(folder, columns, part):
    """Count a part; the first time that 0003.csv is asked for, the process kills itself."""
    mark = Path(folder) / "killed"
    if part.name == "0003.csv" and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return count_part(columns, part)
