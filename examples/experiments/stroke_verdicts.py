"""Does the scenario `stroke` name the same best treatment for all whichever patients it is fitted to?

`python examples/experiments/stroke_verdicts.py halves` fits 20 random halves of the trial's patients as the scenario
is fitted to all, and names the best treatment for all as `policysim compare stroke` does: if it is the best in nine of
ten redraws.
`python examples/experiments/stroke_verdicts.py planted` draws outcomes of the same patients anew, 100 times, from
hazards with an effect that is clear, and counts how often it is told (with `--draws 100`, in half the time).
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from envs.scenario_reader import load_scenario
from examples.experiments.stroke_fit import Hazard, design_of
from examples.experiments.stroke_scenario import SCENARIO, TITLES, Fitted, write_scenario
from examples.experiments.stroke_trial import (
    ARMS,
    DEATH,
    EVENTS,
    OUTCOMES,
    SEED,
    FloatArray,
    fitted_half,
    given,
    indicators,
    read_patients,
)
from policysim.decision.redraws import redrawn
from policysim.report.findings import BETTER, verdict_of_versions
from policysim.study.declared import ScenarioStudy
from policysim.study.study_problem import build_problem
from policysim.study.study_reader import load_study
from policysim.utility import Utility
from policysim.words import FOR_ALL

HALVES = range(1, 21)  # their seeds
SIMULATIONS = 100
# Ratios of the hazard of death that are planted: a fifth fewer deaths by aspirin, a quarter more by heparin.
PLANTED = {"a1": 0.8, "a2": 1.25}


@dataclass(frozen=True)
class Named:
    """The best treatment for all by the stated numbers, and in how many redraws each one is the best."""

    stated: str
    counts: Mapping[str, int]

    @property
    def told(self) -> str:
        """The treatment that is named, "" if it cannot be told which is best."""
        first, most = max(self.counts.items(), key=lambda each: each[1])
        return first if verdict_of_versions(most / sum(self.counts.values())) == BETTER else ""

    def __str__(self) -> str:
        """In words."""
        shares = ", ".join(f"{TITLES[arm]} {count}" for arm, count in self.counts.items())
        return f"stated {TITLES[self.stated]}; best in: {shares}; {TITLES.get(self.told, 'cannot be told')}"


def study_of(fitted: Fitted, seed: int = SEED, draws: int = 200) -> ScenarioStudy:
    """The study `stroke` with a scenario that is fitted to other patients."""
    study = load_study("stroke")
    assert isinstance(study, ScenarioStudy)
    with TemporaryDirectory() as folder:
        path = Path(folder) / SCENARIO.name
        write_scenario(fitted, path, seed, draws)
        scenario = load_scenario(path)
    return replace(study, scenario=scenario, utility=Utility.of(scenario))


def named(patients: pd.DataFrame, seed: int, draws: int) -> Named:
    """What `policysim compare stroke` names, of a scenario that is fitted to these patients."""
    with threadpool_limits(1):
        study = study_of(Fitted.to(patients), seed, draws)
        problem = build_problem(study)
        versions = redrawn(study, problem, ())
    assert versions is not None
    return Named(problem.actions[int(np.argmax(problem.fixed_values))], best_counts(versions.options))


def best_counts(versions: pd.DataFrame) -> dict[str, int]:
    """In how many versions of the model each treatment is the best one for all, most first; of equal ones the first."""
    values = versions.pivot(index="draw", columns="option", values="value")[versions["option"].unique()]
    best = values.idxmax(axis=1).str.removeprefix(FOR_ALL)
    counts = {name.removeprefix(FOR_ALL): 0 for name in values} | best.value_counts().to_dict()
    return dict(sorted(counts.items(), key=lambda row: -row[1]))


def of_half(seed: int, draws: int) -> Named:
    """Of one random half."""
    patients = read_patients()
    return named(patients[fitted_half(patients, seed)].reset_index(drop=True), seed, draws)


def planted(seed: int, draws: int) -> Named:
    """Of the same patients with outcomes that are drawn anew, from the hazards fitted, but for the planted ratios."""
    patients, design, hazards = of_the_trial()
    made, rng = patients.copy(), np.random.default_rng(seed)
    for outcome in OUTCOMES:
        estimates = hazards[outcome].estimates.copy()
        if outcome == DEATH:
            estimates[1 : 1 + len(PLANTED)] = np.log([PLANTED[drug] for drug in ARMS["a3"]])
        made[outcome] = (rng.random(len(patients)) < -np.expm1(-np.exp(design @ estimates))).astype(int)
    return named(made.assign(outcome_6m=six_months(made, patients, rng)), seed, draws)


@cache
def of_the_trial() -> tuple[pd.DataFrame, FloatArray, Mapping[str, Hazard]]:
    """The patients, the design of their fit, and what was fitted to them."""
    patients = read_patients()
    with threadpool_limits(1):
        return patients, design_of(indicators(patients), given(patients)), Fitted.to(patients).hazards


def six_months(made: pd.DataFrame, patients: pd.DataFrame, rng: np.random.Generator) -> np.ndarray:
    """The state at six months of patients with drawn outcomes: that of a real patient who had the same.

    It is drawn at random; where no real patient had the same, from the survivors of another ischaemic stroke.
    """
    state = np.full(len(made), "dead", dtype=object)
    known = patients[patients["outcome_6m"].notna() & (patients[DEATH] == 0)]
    donors = dict(list(known.groupby(list(EVENTS))["outcome_6m"]))
    for events, own in made[made[DEATH] == 0].groupby(list(EVENTS)):
        like = donors.get(events, donors[1, 0, 0, 0]).to_numpy()
        state[own.index] = rng.choice(like, len(own))
    return state


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what is named, one line for each half or simulation, and the sum."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("what", choices=["halves", "planted"])
    parser.add_argument("--draws", type=int, default=200, help="redraws of each scenario; 200 by default")
    parser.add_argument("--seeds", type=int, help="how many; 20 halves, or 100 simulations, by default")
    parser.add_argument("--workers", type=int, default=2, help="processes; 2 by default")
    chosen = parser.parse_args(arguments)
    seeds = range(1, 1 + (chosen.seeds or (len(HALVES) if chosen.what == "halves" else SIMULATIONS)))
    wanted = "a1"
    if chosen.what == "halves":
        everybody = named(read_patients(), SEED, chosen.draws)
        print(f"all patients: {everybody}", flush=True)  # noqa: T201 - what the script is for
        wanted = everybody.stated
    found = []
    with ProcessPoolExecutor(chosen.workers) as pool:
        one = of_half if chosen.what == "halves" else planted
        for seed, each in zip(seeds, pool.map(one, seeds, [chosen.draws] * len(seeds)), strict=True):
            print(f"seed {seed}: {each}", flush=True)  # noqa: T201
            found.append(each.told)
    right, untold = found.count(wanted), found.count("")
    print(  # noqa: T201
        f"{TITLES[wanted]} is told in {right} of {len(found)}, nothing can be told in {untold}, another treatment is "
        f"told in {len(found) - right - untold}"
    )


if __name__ == "__main__":
    main()
