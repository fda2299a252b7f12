"""A table of one's own from real patients: the warfarin consortium's become what `policysim compare warfarin` reads.

`python examples/experiments/warfarin_cohort.py` writes the cohort and its redraws beside the built-in studies, and
prints what each feature earns. examples/experiments/warfarin_known_doses.py sets the study beside the doses that the
patients needed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from examples.experiments.warfarin_patients import (
    DOSES,
    FEATURES,
    GENOTYPES,
    INDUCERS,
    SEED,
    FloatArray,
    agreement,
    band_of,
    cohort_of,
    held_out,
    iwpc_dose,
    known,
    read_patients,
)

FOLDER = Path(__file__).parents[2] / "policysim" / "study" / "studies"
COHORT, REDRAWS = "warfarin.csv", "warfarin-redraws.parquet"
N_REDRAWS = 200
# A feature is used if it makes so many more bands of 100 right, held out: what it costs is to be hidden or public.
EARNS = 1.0
SETS: dict[str, Sequence[str]] = {
    "age, weight": ("age", "weight"),
    "genotypes": GENOTYPES,
    "genotypes, age, weight": FEATURES,
    "and race": (*FEATURES, "race"),
    "and gender": (*FEATURES, "gender"),
    "and amiodarone": (*FEATURES, "amiodarone"),
    "and an enzyme inducer": (*FEATURES, "inducer"),
}


def redraws(patients: pd.DataFrame, n: int = N_REDRAWS, seed: int = SEED) -> pd.DataFrame:
    """The cohort again, of patients drawn from the patients (a bootstrap): all rows for each `draw`."""
    rng, found = np.random.default_rng(seed), []
    for draw in range(n):
        again = patients.iloc[rng.integers(len(patients), size=len(patients))]
        found.append(cohort_of(again).assign(draw=draw))
    return pd.concat(found, ignore_index=True)


def compact(drawn: pd.DataFrame) -> pd.DataFrame:
    """The same in fewer bytes: texts as categories, three decimals."""
    texts = drawn.select_dtypes(exclude="number").columns
    small = drawn.astype({**dict.fromkeys(texts, "category"), "patients": "int16", "draw": "int16"})
    return small.round(3)


def earned(patients: pd.DataFrame) -> pd.DataFrame:
    """What features earn: set, right (of 100, held out), more and se (against genotypes, age and weight), loss.

    Drugs that were not recorded count as not taken.
    """
    known_of = {
        "race": patients["race"],
        "gender": patients["gender"].fillna("unknown"),
        "amiodarone": patients["amiodarone"].eq(1).map({True: "yes", False: "no"}),
        "inducer": patients[list(INDUCERS)].eq(1).any(axis=1).map({True: "yes", False: "no"}),
    }
    wide, dose = patients.assign(**known_of), patients["dose"].to_numpy()
    chances = {name: held_out(wide, features) for name, features in SETS.items()}
    right = {name: of_each.argmax(axis=1) == dose for name, of_each in chances.items()}
    base, rows = right["genotypes, age, weight"].astype(float), []
    for name, each in right.items():
        more = each - base
        loss = -np.log(chances[name][np.arange(len(dose)), dose]).mean()
        rows.append((name, 100 * each.mean(), 100 * more.mean(), 100 * more.std() / len(dose) ** 0.5, loss))
    return pd.DataFrame(rows, columns=["set", "right", "more", "se", "loss"])


def beside_iwpc(patients: pd.DataFrame, chances: FloatArray) -> pd.DataFrame:
    """The model, held out, beside IWPC's algorithm, of patients with a height: who, right, low, high, within 20 %."""
    mg, dose, right_mg = iwpc_dose(patients), patients["dose"].to_numpy(), patients["dose_mg_per_week"].to_numpy()
    some = np.isfinite(mg)
    near = np.abs(mg - right_mg) <= 0.2 * right_mg
    rows = []
    for name, band in (("IWPC's algorithm", band_of(mg)), ("this model, held out", chances.argmax(axis=1))):
        right = band == dose
        by_need = [100 * right[some & (dose == needed)].mean() for needed in range(len(DOSES))]
        within = 100 * near[some].mean() if name.startswith("IWPC") else np.nan
        rows.append((name, int(some.sum()), 100 * right[some].mean(), *by_need, within))
    return pd.DataFrame(rows, columns=["who", "patients", "right", *DOSES, "within 20 %"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, redraw, write, and print what was found on the way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", metavar="FOLDER", type=Path, default=FOLDER, help="for the two files")
    chosen = parser.parse_args(arguments)
    everybody = read_patients()
    patients = known(everybody)
    cohort_of(patients).to_csv(chosen.out / COHORT, index=False)
    compact(redraws(patients)).to_parquet(chosen.out / REDRAWS, compression="zstd", compression_level=19, index=False)
    iwpc = beside_iwpc(patients, held_out(patients, FEATURES))
    tables = [each.to_string(index=False) for each in (agreement(), earned(patients).round(4), iwpc.round(1))]
    filled = f"VKORC1 filled for {int(patients['filled'].sum()):,}"
    sys.stdout.write("\n".join([f"{len(patients):,} of {len(everybody):,} patients; {filled}", *tables, ""]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
