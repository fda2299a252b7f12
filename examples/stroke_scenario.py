"""A scenario from a real trial: the International Stroke Trial, made into the file that `policysim compare stroke` reads.

`python examples/stroke_scenario.py` fits one random half of the patients and writes envs/scenarios/stroke.toml.
`python examples/stroke_calibration.py` sets that scenario beside the other half.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
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

SCENARIO = Path(__file__).parents[1] / "envs" / "scenarios" / "stroke.toml"
# Shares given other features are drawn towards the shares of all patients with the weight of so many patients.
SMOOTHING = 10
# How far the prior may be from the patients, in total variation: of a feature, of a pair of features.
APART = {1: 0.002, 2: 0.04}
# What each feature depends on: the rules state its shares for each combination of these.
PARENTS: dict[tuple[str, ...], tuple[str, ...]] = {
    (AGE,): ("sex", "stroke_type", PRESSURE),
    ("stroke_type",): ("consciousness", HOURS),
    ("stroke_type", "consciousness"): ("leg_weakness", "hemianopia"),
    ("stroke_type", "leg_weakness"): ("face_weakness",),
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
TITLES = {"a0": "none", "a1": "aspirin", "a2": "heparin", "a3": "both"}
HEAD = """\
# Acute stroke, with the treatments of a real trial. Care of the 1990s: a model of that trial, and not advice.
#
# Source: [T] the International Stroke Trial, 19,435 patients (Sandercock, Niewada & Czlonkowska 2011, International Stroke
#         Trial database, version 2, University of Edinburgh, doi 10.7488/ds/104, ODC-By; Trials 2011; 12: 101; Lancet
#         1997; 349: 1569-1581), of whom the {patients:,} with all features known: not the 984 of the pilot phase, whose atrial
#         fibrillation was not recorded, and not the 57 with another type of stroke;
#         [F] fitted on {fitted:,} of them, a random half of each arm, with these numbers of events within 14 days:
#         {events};
#         [U] utilities of the modified Rankin scale (Chaisinanunkul et al., Stroke 2015; 46: 2238-2243).
# `python examples/stroke_scenario.py` makes this file: change it there. reports/stroke-calibration sets it beside the
# patients who were not fitted.

title = "Acute stroke, aspirin and heparin (care of the 1990s)"
# Of the effects of treatments; rules have their own.
source = "the International Stroke Trial, care of the 1990s"

# Features in the order of the record, all known at randomisation; shares of all patients [T]. Leg and face weakness: weak
# or not assessable. A record that no patient had is still possible: shares given other features are drawn towards those
# of all patients with the weight of {smoothing} patients. Total variation between the prior and the patients: at most {one:g} for
# each feature, {two:g} for each pair of features.
[features]
"""
PRIOR = """\
# The shares given other features: age and type of stroke decide the rest. Counts, smoothed [T].
"""
UNTREATED = """\
# The mean over all patients of what they would risk without treatment [F]: it decides the baseline of death below.
[[rules]]
source = "fit: mean risk of the patients, none of them treated"
set = {{ death = {death:.4g} }}
"""
TREATMENTS = """\
# Nothing that a treatment could clear is in a record: it acts on hazards alone.
[natural_clearing]

# Actions, a0 first: no treatment, as randomised (aspirin 300 mg a day; heparin 5,000 or 12,500 units twice a day, half
# each; up to 14 days). Ratios of hazards with 95 % intervals [F]: main effects in all four arms. The trial has no prices of
# drugs; next to what a stroke costs they are nothing: 0.
[treatments.a0]
title = "none"
"""
BOTH = """\
# The product of both. Whether those who got both depart from it [F], two-sided likelihood ratio:
# {departures}.
[treatments.a3]
title = "both"
combines = ["a1", "a2"]
"""
HAZARDS = """\
# Within 14 days. Hazards of the most common level of each feature, with 95 % intervals, and relative risks of the other
# levels: complementary log-log regression [F] with a normal prior on each log relative risk, 95 % of it between a quarter
# and four; none on baselines and ratios of treatments. A recurrent stroke of unknown type counts as ischaemic, as in [T].
# Ratios do not depend on features: of all departures looked for, none was seen in both halves (reports/stroke-calibration).
"""
DEATHS = """\
# Death of any cause; those that follow an event are in it [F].
[death]
baseline = 1
"""
WEIGHTS = """\
# In deaths within 14 days. What was lost at six months, for all patients whose state is known [T]: {losses}:
# 1 minus utility, means of the Rankin grades that each state holds [U]. It was regressed on the outcomes
# within 14 days and on all features by least squares; a weight is the coefficient of the event over that of death. So it
# is what the event costs beside the deaths that it causes. Intervals: 95 %, and from dependent {mild:g}, not recovered
# {mild_not:g} (the mildest grade) to {severe:g}, {severe_not:g} (the worst).
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


def product_of_shares(patients: pd.DataFrame) -> tuple[dict[object, float], dict[object, float]]:
    """P(flag) = number by age * factor by type of stroke, with the shares that the patients have in each of these."""
    first, second = FACTORS
    numbers = dict.fromkeys(levels_of(first), 1.0)
    factors = dict.fromkeys(levels_of(second), 1.0)
    for _ in range(50):  # each pass makes the shares right by one of the two
        for feature, own, other in ((first, numbers, patients[second].map(factors)), (second, factors, None)):
            weight = patients[first].map(numbers) if other is None else other
            expected, present = weight.groupby(patients[feature]).sum(), patients.groupby(feature)[BY_PRODUCT].sum()
            own.update({level: float(present[level] / expected[level]) for level in own})
    return numbers, factors


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
            sets = {feature: each[1] if feature in FLAGS else each for feature, each in made.items()}
            lines = [f'source = "{len(among):,} patients of the trial"', f"when = {inline(when)}"]
            if parents == FACTORS[:1]:
                sets[BY_PRODUCT] = round(numbers[values[0]], 4)
            lines.append(f"set = {inline(sets)}")
            if parents == FACTORS[1:]:
                lines.append(f"multiply = {inline({BY_PRODUCT: round(factors[values[0]], 4)})}")
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


def scenario_text(patients: pd.DataFrame) -> str:
    """The scenario file."""
    half = fitted_half(patients)
    found = {outcome: fit_hazard(patients, half, outcome) for outcome in OUTCOMES}
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
        UNTREATED.format(death=found[DEATH].untreated),
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
    chosen.out.write_text(scenario_text(read_patients()), encoding="utf-8")


if __name__ == "__main__":
    main()
