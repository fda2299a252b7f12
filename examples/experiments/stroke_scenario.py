"""A scenario from a real trial: the International Stroke Trial becomes what `policysim compare stroke` reads.

`python examples/experiments/stroke_scenario.py` fits all patients and writes envs/scenarios/stroke.toml. Beside it, in
stroke-redraws.csv, it writes what the same fit makes of patients who are drawn anew, 200 times.
examples/experiments/stroke_calibration.py fits halves of the patients alike, and sets them beside the other halves.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from envs.cohort import prior
from envs.records import RecordSpace
from envs.scenario import Scenario
from envs.scenario_reader import load_scenario
from examples.experiments.stroke_fit import (
    LOSSES,
    Estimate,
    Hazard,
    design_of,
    fit_hazard,
    fit_weights,
    most_common,
    reference_row,
    refits,
    relative_risks,
)
from examples.experiments.stroke_trial import (
    AGE,
    ARMS,
    DEATH,
    EVENTS,
    FEATURES,
    FLAGS,
    HOURS,
    OUTCOMES,
    PRESSURE,
    SEED,
    FloatArray,
    indicators,
    levels_of,
    read_patients,
)

SCENARIO = Path(__file__).parents[2] / "envs" / "scenarios" / "stroke.toml"
REDRAWS = 200
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
#          [F] fitted to all of these. Events among them within 14 days:
#          {events}.
#          [U] utilities of the modified Rankin scale: Chaisinanunkul et al., Stroke 2015; 46: 2238-2243.
# `python examples/experiments/stroke_scenario.py` makes this file: change it there. reports/stroke-calibration fits
# halves of the patients alike, and sets them beside the other halves: risks are calibrated there; benefits, which no
# patient shows, cannot be. Early heparin: the trial found no clinical advantage at six months (dead or dependent 62.9 %
# with and without it; Lancet, as above), and a Cochrane review of such trials no fewer dead or dependent (odds ratio
# 0.99, 0.93 to 1.04; Sandercock, Counsell & Kane 2015, doi 10.1002/14651858.CD000024.pub4).

title = "Acute stroke, aspirin and heparin (care of the 1990s)"
# Of the effects of treatments; rules have their own.
source = "the International Stroke Trial, care of the 1990s"
# What else the numbers below could be, all at once: the same fit to patients drawn anew within each arm, with
# replacement (bootstrap), {draws} times. The arms share their controls, and the estimates move together. Intervals
# below are of each number alone. What a state at six months loses is drawn evenly between its mild end and its severe
# one. Who the patients are is not redrawn.
redraws = "{redraws}"

# Features in the order of the record, all known at randomisation; shares of all patients [T]. Of eight deficits, arm
# weakness (arm or hand, present or not assessable) and hemianopia tell about death beside the other features: chosen in
# steps by the Bayesian information criterion, in a random half of the patients. Records that no patient had are still
# possible: shares given other features are drawn towards those of all patients with the weight of {smoothing}
# patients. Total variation between this prior and the patients: at most {one:g} for each feature, at most {two:g} for
# each pair of features.
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
# looked for is seen in both halves of the patients (reports/stroke-calibration).
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


@dataclass(frozen=True)
class Prior:
    """The records of a scenario and how probable each is, as a fit needs them."""

    design: FloatArray  # of untreated patients, (n, p)
    weight: FloatArray  # (n,)

    @classmethod
    def of(cls, space: RecordSpace, weight: FloatArray) -> Prior:
        """Of all records."""
        codes = np.indices(space.shape).reshape(len(space.shape), -1)
        records = pd.DataFrame(
            {name: np.array(levels_of(name))[at] for name, at in zip(space.names, codes, strict=True)}
        )
        return cls(design_of(indicators(records), np.zeros((len(records), 2), dtype=np.bool_)), weight)

    def mean(self, estimates: FloatArray) -> float:
        """P(event) without treatment, of a fit."""
        return float(self.weight @ -np.expm1(-np.exp(self.design @ estimates)))


@dataclass(frozen=True)
class Fitted:
    """All that is fitted to some patients.

    Attributes
    ----------
    patients : DataFrame
        As records.
    hazards : mapping of str to Hazard
        Of each outcome.
    weights : mapping of str to Estimate
        Of each event.
    """

    patients: pd.DataFrame
    hazards: Mapping[str, Hazard]
    weights: Mapping[str, Estimate]

    @classmethod
    def to(cls, patients: pd.DataFrame) -> Fitted:
        """Fit everything."""
        # No event is worth having: a weight is 0 at least.
        weights = {
            event: Estimate(*(max(0.0, end) for end in (each.value, each.low, each.high)))
            for event, each in fit_weights(patients).items()
        }
        return cls(patients, {each: fit_hazard(patients, each) for each in OUTCOMES}, weights)

    @cached_property
    def rules(self) -> list[str]:
        """The rules that make the prior, as text."""
        return list(rules(self.patients))

    def prior(self) -> Prior:
        """The prior that the rules make of these patients."""
        scenario = self.scenario(death=0.1)  # any death will do
        return Prior.of(scenario.space, prior(scenario))

    def scenario(self, death: float | None = None) -> Scenario:
        """The scenario, without redraws; its mean risk of death without treatment is that of the fit by default."""
        death = self.prior().mean(self.hazards[DEATH].estimates) if death is None else death
        with TemporaryDirectory() as folder:
            path = Path(folder) / SCENARIO.name
            path.write_text(scenario_text(self, death, redraws=""), encoding="utf-8")
            return load_scenario(path)

    def redraws(self, among: Prior, seed: int = SEED, draws: int = REDRAWS) -> pd.DataFrame:
        """What else the numbers of the scenario could be: a column for each, by its key in the file, a row a draw."""
        references = most_common(self.patients)
        reference, n_rules = reference_row(references), len(self.rules)
        rows = []
        for refit in refits(self.patients, self.hazards, seed, draws):
            row: dict[str, Any] = {"draw": len(rows) + 1}
            for place, drug in enumerate(ARMS["a3"]):
                for outcome in OUTCOMES:
                    row[f"treatments.{drug}.hazard_ratio.{outcome}"] = np.exp(refit[outcome][1 + place])
            for outcome in OUTCOMES:
                section = outcome if outcome == DEATH else f"events.{outcome}"
                if outcome == DEATH:
                    row[f"rules.{n_rules}.set.{DEATH}"] = among.mean(refit[outcome])
                else:
                    row[f"{section}.baseline"] = np.exp(reference @ refit[outcome])
                for feature, risks in relative_risks(refit[outcome], references).items():
                    others = (place for place in range(len(risks)) if place != references[feature])
                    row |= {f"{section}.relative_risk.{feature}.{place}": risks[place] for place in others}
            rows.append(row | {f"weights.{event}": weight for event, weight in refit["weights"].items()})
        return pd.DataFrame(rows)


def write_scenario(fitted: Fitted, path: Path, seed: int = SEED, draws: int = REDRAWS) -> None:
    """The scenario file and its redraws."""
    among = fitted.prior()
    redraws = path.with_name(f"{path.stem}-redraws.csv")
    text = scenario_text(fitted, among.mean(fitted.hazards[DEATH].estimates), redraws.name, draws)
    fitted.redraws(among, seed, draws).to_csv(redraws, index=False, float_format="%.4g")
    path.write_text(text, encoding="utf-8")


def scenario_text(fitted: Fitted, death: float, redraws: str, draws: int = REDRAWS) -> str:
    """The scenario file with a mean risk of death without treatment, and the name of the file of its redraws."""
    patients, found, stated = fitted.patients, fitted.hazards, LOSSES["stated"]
    head = HEAD.format(
        patients=len(patients),
        events=", ".join(f"{outcome} {count}" for outcome, count in patients[list(OUTCOMES)].sum().items()),
        draws=draws,
        redraws=redraws,
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
        *(f"{rule}\n" for rule in fitted.rules),
        UNTREATED.format(baseline=found[DEATH].baseline, death=death),
        *treatments(found),
        *hazards(found),
        weights + "\n".join(f"{event} = {weight}" for event, weight in fitted.weights.items()),
        "death = 1",
    ]
    text = "\n".join(parts) + "\n"
    return text if redraws else text.replace('redraws = ""\n', "")


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the scenario."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--out", type=Path, default=SCENARIO, help="the file; the built-in scenario by default")
    parser.add_argument(
        "--draws", type=int, default=REDRAWS, help=f"how often it is fitted again; {REDRAWS} by default"
    )
    chosen = parser.parse_args(arguments)
    write_scenario(Fitted.to(read_patients()), chosen.out, draws=chosen.draws)


if __name__ == "__main__":
    main()
