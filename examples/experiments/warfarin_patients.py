"""The patients of the International Warfarin Pharmacogenetics Consortium, as kinds of patients; and their model.

The right dose of every patient is known, so what each band of doses leads to is known, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.intp]

DATA = Path(__file__).parents[1] / "warfarin" / "iwpc.parquet"
SEED = 1
FOLDS = 10
# mg a week: low is at most the first, high at least the second.
LOW, HIGH = 21.0, 49.0
DOSES = ("low dose", "middle dose", "high dose")
# The levels of each feature, the commonest genotype first.
LEVELS: dict[str, tuple[str, ...]] = {
    "vkorc1": ("G/G", "A/G", "A/A"),
    "cyp2c9": ("*1/*1", "*1/*2", "*1/*3 or rarer", "two variants"),
    "age": ("<50", "50-59", "60-69", "70+"),
    "weight": ("<60 kg", "60-74 kg", "75-89 kg", "90+ kg"),
}
GENOTYPES = ("vkorc1", "cyp2c9")
FEATURES = tuple(LEVELS)
# Sites in linkage with -1639, and what each says of it. Two of them say it less surely of Black patients.
LINKED: dict[str, tuple[dict[str, str], bool]] = {
    "vkorc1_1173": ({"C/C": "G/G", "C/T": "A/G", "T/T": "A/A"}, True),
    "vkorc1_2255": ({"C/C": "G/G", "C/T": "A/G", "T/T": "A/A"}, False),
    "vkorc1_1542": ({"G/G": "G/G", "C/G": "A/G", "C/C": "A/A"}, False),
}
BLACK = "Black or African American"
# So weak a ridge only keeps combinations that nobody has from infinite odds.
RIDGE = 10.0


def read_patients(path: Path = DATA) -> pd.DataFrame:
    """All patients whose right dose is known: the columns of the data, `dose` (0 low, 1 middle, 2 high), and `filled`.

    Where VKORC1 at -1639 was not measured, a site in linkage with it says what it is; `filled` marks these patients.
    """
    raw = pd.read_parquet(path)
    raw = raw[raw["dose_mg_per_week"].notna()].reset_index(drop=True)
    genotype = raw["vkorc1_1639"]
    for column, says in LINKED.items():
        genotype = genotype.fillna(_linked(raw, column, *says))
    mg = raw["dose_mg_per_week"]
    return raw.assign(
        vkorc1=genotype,
        filled=genotype.notna() & raw["vkorc1_1639"].isna(),
        dose=np.select([mg <= LOW, mg < HIGH], [0, 1], default=2),
        cyp2c9_measured=raw["cyp2c9"],
        cyp2c9=raw["cyp2c9"].map(_variants, na_action="ignore"),
        decade=raw["age"],
        age=_age(raw["age"]),
        weight=pd.cut(raw["weight_kg"], [0, 60, 75, 90, np.inf], right=False, labels=LEVELS["weight"]).astype(object),
    )


def _linked(raw: pd.DataFrame, column: str, says: dict[str, str], of_all: bool) -> pd.Series:
    return raw[column].map(says).where(of_all | (raw["race"] != BLACK))


def _variants(genotype: str) -> str:
    """One of the levels: a rarer allele than *2 counts as *3."""
    first, second = genotype.split("/")
    if first != "*1":
        return "two variants"
    return genotype if second in ("*1", "*2") else "*1/*3 or rarer"


def _age(decade: pd.Series) -> pd.Series:
    """From decades such as 50-59."""
    years = decade.str.extract(r"^(\d+)")[0].astype(float)
    return pd.cut(years, [0, 50, 60, 70, np.inf], right=False, labels=LEVELS["age"]).astype(object)


def known(patients: pd.DataFrame, features: Sequence[str] = FEATURES) -> pd.DataFrame:
    """Those of whom some features are known."""
    return patients.dropna(subset=list(features)).reset_index(drop=True)


def agreement(path: Path = DATA) -> pd.DataFrame:
    """How often a linked site says what was measured at -1639: site, patients with both, agree, filled."""
    raw, rows = pd.read_parquet(path), []
    raw = raw[raw["dose_mg_per_week"].notna()]
    missing = raw["vkorc1_1639"].isna()
    for column, says in LINKED.items():
        told = _linked(raw, column, *says)
        both = told.notna() & raw["vkorc1_1639"].notna()
        rows.append(
            (
                column,
                int(both.sum()),
                float((told == raw["vkorc1_1639"])[both].mean()),
                int((missing & told.notna()).sum()),
            )
        )
        missing &= told.isna()
    return pd.DataFrame(rows, columns=["site", "patients with both", "agree", "filled"])


def kinds() -> pd.DataFrame:
    """All combinations of levels: the last feature varies fastest."""
    return pd.DataFrame(product(*LEVELS.values()), columns=list(LEVELS))


def design(patients: pd.DataFrame, features: Sequence[str]) -> FloatArray:
    """An indicator for each level of the features but the first."""
    columns = [patients[name] == level for name in features for level in _levels(patients, name)[1:]]
    return np.column_stack(columns).astype(np.float64)


def _levels(patients: pd.DataFrame, name: str) -> Sequence[str]:
    return LEVELS[name] if name in LEVELS else sorted(patients[name].unique())


def model(features: FloatArray, dose: pd.Series | IntArray) -> LogisticRegression:
    """The multinomial logistic model of the right band."""
    return LogisticRegression(C=RIDGE, max_iter=1000).fit(features, dose)


def folds(n: int, seed: int = SEED) -> IntArray:
    """The fold of each of n patients, at random and of equal sizes."""
    return np.random.default_rng(seed).permutation(np.arange(n) % FOLDS)


def held_out(patients: pd.DataFrame, features: Sequence[str], seed: int = SEED) -> FloatArray:
    """P(right band) of each patient, (n, 3), by the model that was fitted to the nine other folds."""
    columns, fold = design(patients, features), folds(len(patients), seed)
    found = np.empty((len(patients), len(DOSES)))
    for number in range(FOLDS):
        apart = fold == number
        found[apart] = model(columns[~apart], patients["dose"][~apart]).predict_proba(columns[apart])
    return found


def cohort_of(patients: pd.DataFrame) -> pd.DataFrame:
    """A row for each kind and dose, with how many patients there are, and what the model expects.

    Columns: the features, dose, patients, overdosed, underdosed, two_bands_off (expected per patient).
    """
    every = kinds()
    right = model(design(patients, FEATURES), patients["dose"]).predict_proba(design(every, FEATURES))
    counts = patients.groupby(list(FEATURES)).size().reindex(pd.MultiIndex.from_frame(every), fill_value=0).to_numpy()
    parts = []
    for place, dose in enumerate(DOSES):
        bands = np.arange(len(DOSES)) - place
        parts.append(
            every.assign(
                dose=dose,
                patients=counts,
                overdosed=right[:, bands < 0].sum(axis=1).round(5),
                underdosed=right[:, bands > 0].sum(axis=1).round(5),
                two_bands_off=right[:, np.abs(bands) == 2].sum(axis=1).round(5),
            )
        )
    return pd.concat(parts).sort_index(kind="stable").reset_index(drop=True)


# IWPC 2009 (N Engl J Med 360:753-764), its pharmacogenetic algorithm: the square root of the weekly dose in mg. The
# numbers are those of its supplementary appendix, as public code that names it writes them.
INTERCEPT = 5.6044
BY_NUMBER = {"decades": -0.2614, "height_cm": 0.0087, "weight_kg": 0.0128}
BY_LEVEL: dict[str, dict[str, float]] = {
    "vkorc1": {"A/G": -0.8677, "A/A": -1.6974, "": -0.4854},
    "cyp2c9_measured": {
        "*1/*2": -0.5211,
        "*1/*3": -0.9357,
        "*2/*2": -1.0616,
        "*2/*3": -1.9206,
        "*3/*3": -2.3312,
        "": -0.2188,
    },
    "race": {"Asian": -0.1092, BLACK: -0.2760, "Unknown": -0.1032},
}
AMIODARONE, INDUCER = -0.5503, 1.1816
INDUCERS = ("carbamazepine", "phenytoin", "rifampin")


def iwpc_dose(patients: pd.DataFrame) -> FloatArray:
    """The weekly dose in mg by IWPC's algorithm, (n,); NaN without age, height or weight.

    Drugs that were not recorded count as not taken, and alleles of CYP2C9 that it does not know as unknown.
    """
    columns = patients.assign(decades=patients["decade"].str.extract(r"^(\d+)")[0].astype(float) // 10)
    root = INTERCEPT + sum(factor * columns[name] for name, factor in BY_NUMBER.items())
    for name, factors in BY_LEVEL.items():
        reference = {"vkorc1": "G/G", "cyp2c9_measured": "*1/*1", "race": "White"}[name]
        stated = columns[name].map({**factors, reference: 0.0})
        root = root + stated.fillna(factors.get("", 0.0))
    root = root + AMIODARONE * columns["amiodarone"].eq(1) + INDUCER * columns[list(INDUCERS)].eq(1).any(axis=1)
    return np.asarray(root**2, dtype=np.float64)


def band_of(mg: FloatArray) -> IntArray:
    """The band of a dose."""
    return np.select([mg <= LOW, mg < HIGH], [0, 1], default=2)
