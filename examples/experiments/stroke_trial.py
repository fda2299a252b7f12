"""The patients of the International Stroke Trial, as records of the scenario `stroke`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

DATA = Path(__file__).parents[1] / "stroke" / "ist.parquet"
SEED = 1  # of the halves
# What the columns of the trial are cut or turned into: feature -> column, level -> values.
AGE, HOURS, PRESSURE = "age", "hours_since_onset", "systolic_pressure"
BANDS: dict[str, tuple[str, dict[str, float]]] = {  # band -> its upper end, not included
    AGE: ("age", {"16-49": 50, "50-59": 60, "60-69": 70, "70-79": 80, "80+": np.inf}),
    HOURS: ("hours_since_onset", {"0-6": 7, "7-12": 13, "13-24": 25, "25-48": np.inf}),
    PRESSURE: ("systolic_bp", {"< 140": 140, "140-159": 160, "160-179": 180, "180+": np.inf}),
}
CODES: dict[str, tuple[str, dict[str, str]]] = {
    "sex": ("sex", {"F": "female", "M": "male"}),
    "consciousness": ("consciousness", {name: name for name in ("alert", "drowsy", "unconscious")}),
    "stroke_type": (
        "stroke_type",
        {"TACS": "total anterior", "PACS": "partial anterior", "LACS": "lacunar", "POCS": "posterior"},
    ),
    "hemianopia": ("hemianopia", {"N": "no", "Y": "yes", "C": "not assessable"}),
}
FLAGS: dict[str, tuple[str, str]] = {  # flag -> its column, and the codes that count as present
    "atrial_fibrillation": ("atrial_fibrillation", "Y"),
    "arm_weakness": ("arm_or_hand", "YC"),
}
# In the order of the record.
FEATURES = (
    AGE,
    "sex",
    HOURS,
    "consciousness",
    "stroke_type",
    "atrial_fibrillation",
    "arm_weakness",
    "hemianopia",
    PRESSURE,
)
# What was looked for at randomisation: Y, N, or C for what cannot be assessed. Two of them are features.
DEFICITS = (
    *("face", "arm_or_hand", "leg_or_foot", "dysphasia"),
    *("hemianopia", "visuospatial", "brainstem", "other_deficit"),
)
DEATH = "death"
EVENTS: dict[str, tuple[str, tuple[str, ...]]] = {  # event -> its title, and the columns it is read from
    "ischaemic_stroke": ("recurrent strokes", ("ischaemic_stroke_14d", "indeterminate_stroke_14d")),
    "haemorrhagic_stroke": ("brain bleeds", ("haemorrhagic_stroke_14d",)),
    "major_bleed": ("major bleeds", ("major_bleed_14d",)),
    "pulmonary_embolism": ("lung embolisms", ("pulmonary_embolism_14d",)),
}
OUTCOMES = (*EVENTS, DEATH)
ASPIRIN, HEPARIN = "a1", "a2"
ARMS = {"a0": (), ASPIRIN: (ASPIRIN,), HEPARIN: (HEPARIN,), "a3": (ASPIRIN, HEPARIN)}


def read_columns(path: Path = DATA) -> pd.DataFrame:
    """The trial's own columns, of the patients whose features are all known.

    Left out are the 984 of the pilot phase, whose atrial fibrillation was not recorded, and the 57 with another type of
    stroke.
    """
    raw = pd.read_parquet(path)
    return raw[raw["atrial_fibrillation"].notna() & (raw["stroke_type"] != "OTH")].reset_index(drop=True)


def read_patients(path: Path = DATA) -> pd.DataFrame:
    """These patients as records of the scenario: arm, the features, the outcomes (0, 1), outcome_6m."""
    raw = read_columns(path)
    columns: dict[str, object] = {"arm": raw["arm"]}
    for name, (column, ends) in BANDS.items():
        place = np.searchsorted(list(ends.values()), raw[column], side="right")
        columns[name] = np.array(list(ends))[place]
    for name, (column, words) in CODES.items():
        columns[name] = raw[column].map(words)
    for name, (column, present) in FLAGS.items():
        columns[name] = raw[column].isin(list(present)).astype(int)
    for name, (_, sources) in EVENTS.items():
        columns[name] = raw[list(sources)].max(axis=1)
    columns[DEATH] = raw["death_14d"]
    return pd.DataFrame(columns)[["arm", *FEATURES, *OUTCOMES]].assign(outcome_6m=raw["outcome_6m"])


def levels_of(feature: str) -> list[str | int]:
    """The levels of a feature, in the order of the file."""
    if feature in BANDS:
        return list(BANDS[feature][1])
    return list(CODES[feature][1].values()) if feature in CODES else [0, 1]


def fitted_half(patients: pd.DataFrame, seed: int = SEED) -> NDArray[np.bool_]:
    """Who is in the half that everything is fitted on: every arm is halved at random."""
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(patients), dtype=bool)
    for arm in ARMS:
        here = np.flatnonzero(patients["arm"] == arm)
        chosen[rng.permutation(here)[: len(here) // 2]] = True
    return chosen


def indicators(patients: pd.DataFrame, features: Sequence[str] = FEATURES) -> FloatArray:
    """A column for every level of every feature, (n, levels)."""
    return np.column_stack(
        [patients[feature].to_numpy() == level for feature in features for level in levels_of(feature)]
    ).astype(np.float64)


def given(patients: pd.DataFrame) -> FloatArray:
    """Who was to get aspirin and heparin, (n, 2)."""
    return np.column_stack([patients["arm"].isin([arm for arm in ARMS if drug in ARMS[arm]]) for drug in ARMS["a3"]])
