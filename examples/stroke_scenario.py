"""A scenario from a real trial: the International Stroke Trial becomes what `policysim compare stroke` reads.

`python examples/stroke_scenario.py` fits one random half of the patients and writes envs/scenarios/stroke.toml.
`python examples/stroke_calibration.py` sets that scenario beside the other half.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from stroke_fit import LOSSES, Hazard, fit_hazard, fit_weights
from stroke_trial import (
    AGE,
    ARMS,
    DEATH,
    EVENTS,
    FEATURES,
    FLAGS,
    HOURS,
    OUTCOMES,
    PRESSURE,
    fitted_half,
    levels_of,
    read_patients,
)

from envs.cohort import prior
from envs.scenario import Scenario
from envs.scenario_reader import load_scenario

SCENARIO = Path(__file__).parents[1] / "envs" / "scenarios" / "stroke.toml"
# Shares given other features are drawn towards the shares of all patients with the weight of so many patients.
SMOOTHING = 10
# How far the prior may be from the patients, in total variation: of a feature, of a pair of features.
APART = {1: 0.002, 2: 0.04}
# What each feature depends on: the rules state its shares for each combination of these.
PARENTS: dict[tuple[str, ...], tuple[str, ...]] = {
    (AGE,): ("sex", "stroke_type", PRESSURE),
    ("stroke_type",): ("consciousness", HOURS),
    ("stroke_type", "consciousness"): ("arm_weakness", "hemianopia"),
}
# The product of a number by age and one by type of stroke: both would make twenty rules.
BY_PRODUCT, FACTORS = "atrial_fibrillation", (AGE, "stroke_type")
# What patients are called, where the name of the feature and the level do not say it.
WORDS = {
    "sex": ["female", "male"],
    "consciousness": ["alert", "drowsy", "unconscious"],
    "stroke_type": [f"{each} stroke" for each in levels_of("stroke_type")],
    "hemianopia": ["no hemianopia", "hemianopia", "hemianopia not assessable"],
}
TITLES = {"a0": "no drug", "a1": "aspirin", "a2": "heparin", "a3": "both drugs"}
HEAD = """\
# Acute stroke, with the treatments of a real trial. Care of the 1990s: a model of that trial, not advice.
#
# Sources: [T] the International Stroke Trial, 19,435 patients: Sandercock, Niewada & Czlonkowska 2011, International
#          Stroke Trial database (version 2), University of Edinburgh, doi 10.7488/ds/104, ODC-By; described in Trials
#          2011; 12: 101; the trial: Lancet 1997; 349: 1569-1581. Taken are the {patients:,} patients whose features are
#          all known: not the 984 of the pilot phase, whose atrial fibrillation was not recorded, and not the 57 with
#          another type of stroke.
#          [F] fitted to {fitted:,} of them, a random half of each arm. Events among these within 14 days:
#          {events}.
#          [U] utilities of the modified Rankin scale: Chaisinanunkul et al., Stroke 2015; 46: 2238-2243.
# `python examples/stroke_scenario.py` makes this file: change it there. reports/stroke-calibration sets it beside the
# patients to whom nothing was fitted.

title = "Acute stroke, aspirin and heparin (care of the 1990s)"
# Of the effects of treatments; rules have their own.
source = "the International Stroke Trial, care of the 1990s"

# Features in the order of the record, all known at randomisation; shares of all patients [T]. Of eight deficits, arm
# weakness (arm or hand, present or not assessable) and hemianopia tell about death beside the other features: chosen in
# steps by the Bayesian information criterion [F]. Records that no patient had are still possible: shares given other
# features are drawn towards those of all patients with the weight of {smoothing} patients. Total variation between this
# prior and the patients: at most {one:g} for each feature, at most {two:g} for each pair of features.
[features]
"""
PRIOR = """\
# Shares given other features: age and type of stroke decide the rest. Counts, smoothed as said above [T].
"""
UNTREATED = """\
# The mean risk of this prior without treatment [F], so that the hazard of death below is the one fitted: {baseline} for
# the most common level of each feature.
[[rules]]
source = "fit: mean risk without treatment"
set = {{ death = {death:.4g} }}
"""
TREATMENTS = """\
# Actions, a0 first: no treatment; as randomised: aspirin 300 mg a day, heparin 5,000 or 12,500 units twice a day (half
# of the patients each), up to 14 days. Ratios of hazards with 95 % intervals [F]: main effects, from all four arms.
# Costs are 0: utility counts what happens to patients.
[treatments.a0]
title = "no drug"
"""
BOTH = """\
# The product of both. Whether those who got both depart from it [F], two-sided likelihood ratio:
# {departures}.
[treatments.a3]
title = "both drugs"
combines = ["a1", "a2"]
"""
HAZARDS = """\
# Within 14 days. Baselines are hazards of the most common level of each feature, with 95 % intervals; relative risks
# are those of the other levels: complementary log-log regression [F] with a normal prior on each log relative risk,
# 95 % of it between a quarter and four, and none on baselines and on ratios of treatments. A recurrent stroke of
# unknown type counts as ischaemic, as in the trial. Ratios do not depend on features: none of the departures that were
# looked for is seen in both halves (reports/stroke-calibration).
"""
DEATHS = """\
# Death of any cause; those after an event are among them [F].
[death]
baseline = 1
"""
WEIGHTS = """\
# In deaths within 14 days. What was lost at six months, of all patients whose state is known [T]:
# {losses}:
# 1 minus utility, the mean of the Rankin grades that a state holds [U]. Least squares of it on the outcomes within 14
# days and on all features; a weight is the coefficient of the event over that of death: what the event costs beside
# the deaths that it causes. Intervals: 95 %, and from dependent {mild:g}, not recovered {mild_not:g} (the mildest
# grades) to {severe:g} and {severe_not:g} (the worst).
[weights]
"""


def shares(patients: pd.DataFrame, feature: str, among: pd.DataFrame) -> list[float]:
    """The smoothed shares of the levels of a feature among some of the patients, in whole hundredths of a percent."""
    levels = levels_of(feature)
    counts = among[feature].value_counts().reindex(levels, fill_value=0).to_numpy()
    overall = patients[feature].value_counts(normalize=True).reindex(levels).to_numpy()
    smooth = (counts + SMOOTHING * overall) / (len(among) + SMOOTHING)
    parts = np.maximum(np.round(smooth * 10_000), 1).astype(int)
    parts[parts.argmax()] += 10_000 - parts.sum()
    return (parts / 10_000).tolist()


def product_of_shares(patients: pd.DataFrame) -> tuple[dict[str | int, float], dict[str | int, float]]:
    """P(flag) = number by age * factor by type of stroke, with the shares that the patients have in each of these."""
    rows, columns = map(levels_of, FACTORS)
    everybody, present = (
        pd.crosstab(each[FACTORS[0]], each[FACTORS[1]]).loc[rows, columns].to_numpy(dtype=np.float64)
        for each in (patients, patients[patients[BY_PRODUCT] == 1])
    )
    factors = np.ones(len(columns))
    for _ in range(100):  # each pass makes the shares right by one of the two, in turn
        numbers = present.sum(axis=1) / (everybody @ factors)
        factors = present.sum(axis=0) / (numbers @ everybody)
    return dict(zip(rows, numbers.tolist(), strict=True)), dict(zip(columns, factors.tolist(), strict=True))


def rules(patients: pd.DataFrame) -> Iterator[str]:
    """The rules that make the prior."""
    numbers, factors = product_of_shares(patients)
    overall = {flag: shares(patients, flag, patients)[1] for flag in FLAGS if flag != BY_PRODUCT}
    yield f'[[rules]]\nsource = "all patients of the trial; the rules below know better"\nset = {inline(overall)}'
    for parents, children in PARENTS.items():
        for values in itertools.product(*map(levels_of, parents)):
            when = dict(zip(parents, values, strict=True))
            among = patients[(patients[list(parents)] == list(values)).all(axis=1)]
            if among.empty:
                continue
            made = {feature: shares(patients, feature, among) for feature in children}
            changes: dict[str, dict[str, object]] = {
                "shares": {feature: each for feature, each in made.items() if feature not in FLAGS},
                "set": {flag: each[1] for flag, each in made.items() if flag in FLAGS},
                "multiply": {},
            }
            if parents == FACTORS[:1]:
                changes["set"][BY_PRODUCT] = round(numbers[values[0]], 4)
            if parents == FACTORS[1:]:
                changes["multiply"][BY_PRODUCT] = round(factors[values[0]], 4)
            lines = [f'source = "{len(among):,} patients of the trial"', f"when = {inline(when)}"]
            lines += [f"{operation} = {inline(each)}" for operation, each in changes.items() if each]
            yield "\n".join(["[[rules]]", *lines])


def inline(values: Mapping[str, object]) -> str:
    """An inline table of TOML."""
    return f"{{ {', '.join(f'{name} = {json.dumps(value)}' for name, value in values.items())} }}"


def features(patients: pd.DataFrame) -> Iterator[str]:
    """The features, with the shares of all patients."""
    for feature in FEATURES:
        if feature in FLAGS:
            yield f"{feature} = {{}}"
        else:
            words = f", words = {json.dumps(WORDS[feature])}" if feature in WORDS else ""
            levels = json.dumps(levels_of(feature))
            yield f"{feature} = {{ levels = {levels}{words}, shares = {shares(patients, feature, patients)} }}"


def treatments(found: Mapping[str, Hazard]) -> Iterator[str]:
    """The section about treatments."""
    yield TREATMENTS
    for drug in ARMS["a3"]:
        yield f'[treatments.{drug}]\ntitle = "{TITLES[drug]}"\n'
        yield f"[treatments.{drug}.hazard_ratio]"
        yield from (f"{outcome} = {each.ratios[drug]}" for outcome, each in found.items())
        yield ""
    departures = (f"{outcome} p = {each.combined:.2g}" for outcome, each in found.items())
    yield BOTH.format(departures=";\n# ".join(departures))


def hazards(found: Mapping[str, Hazard]) -> Iterator[str]:
    """The sections about events and death."""
    yield HAZARDS.rstrip()
    for outcome, each in found.items():
        if outcome == DEATH:
            yield f"{DEATHS}\n[death.relative_risk]"
        else:
            yield f'[events.{outcome}]\ntitle = "{EVENTS[outcome][0]}"\nbaseline = {each.baseline}\n'
            yield f"[events.{outcome}.relative_risk]"
        for feature, risks in each.risks.items():
            yield f"{feature} = [{', '.join(f'{risk:.3g}' for risk in risks)}]"
        yield ""


def mean_untreated(scenario: Scenario, found: Hazard) -> float:
    """P(event) without treatment, over the prior of a scenario."""
    space = scenario.space
    hazard = np.full(space.shape, found.baseline.value)
    for feature, risks in found.risks.items():
        hazard = hazard * space.along(feature, risks)
    return float(prior(scenario) @ -np.expm1(-hazard.ravel()))


def fitted_scenario(patients: pd.DataFrame) -> str:
    """The scenario file."""
    half = fitted_half(patients)
    found = {outcome: fit_hazard(patients, half, outcome) for outcome in OUTCOMES}
    # Any death will do for the prior.
    with TemporaryDirectory() as folder:
        path = Path(folder) / SCENARIO.name
        path.write_text(scenario_text(patients, half, found, death=0.1), encoding="utf-8")
        death = mean_untreated(load_scenario(path), found[DEATH])
    return scenario_text(patients, half, found, death)


def scenario_text(patients: pd.DataFrame, half: NDArray[np.bool_], found: Mapping[str, Hazard], death: float) -> str:
    """The scenario file with a mean risk of death without treatment."""
    counts = patients[half][list(OUTCOMES)].sum()
    stated = LOSSES["stated"]
    head = HEAD.format(
        patients=len(patients),
        fitted=int(half.sum()),
        events=", ".join(f"{outcome} {count}" for outcome, count in counts.items()),
        smoothing=SMOOTHING,
        one=APART[1],
        two=APART[2],
    )
    weights = WEIGHTS.format(
        losses=", ".join(f"{state} {loss:g}" for state, loss in stated.items()),
        mild=LOSSES["mild"]["dependent"],
        mild_not=LOSSES["mild"]["not recovered"],
        severe=LOSSES["severe"]["dependent"],
        severe_not=LOSSES["severe"]["not recovered"],
    )
    parts = [
        head + "\n".join(features(patients)) + "\n",
        PRIOR,
        *(f"{rule}\n" for rule in rules(patients)),
        UNTREATED.format(baseline=found[DEATH].baseline, death=death),
        *treatments(found),
        *hazards(found),
        weights + "\n".join(f"{event} = {weight}" for event, weight in fit_weights(patients).items()),
        "death = 1",
    ]
    return "\n".join(parts) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the scenario."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=SCENARIO, help="the file; the built-in scenario by default")
    chosen = parser.parse_args(arguments)
    chosen.out.write_text(fitted_scenario(read_patients()), encoding="utf-8")


if __name__ == "__main__":
    main()
