"""The scenario of the International Stroke Trial, against what the trial published and planted mistakes."""

import itertools
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stroke_calibration import LEVEL, band, calibration, departures, findings, other_halves
from stroke_fit import LOSSES, fit, fit_hazard, fit_weights, telling_deficits
from stroke_scenario import APART, SCENARIO, main, product_of_shares
from stroke_trial import (
    ARMS,
    DATA,
    DEATH,
    EVENTS,
    FEATURES,
    OUTCOMES,
    SEED,
    fitted_half,
    levels_of,
    read_columns,
    read_patients,
)
from threadpoolctl import threadpool_limits

import policysim as ps
from envs.cohort import prior

# At least so many of the groups must be within their band.
WANTED = 0.9


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """Threads of their own cost more than they give to matrices of forty columns."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def patients():
    return read_patients()


@pytest.fixture(scope="module")
def half(patients):
    return fitted_half(patients)


@pytest.fixture(scope="module")
def found():
    return calibration()


# Lancet 1997; 349: 1569-1581, summary.
# The ones with the drug and the others: patients, deaths, and per cent with an event.
PUBLISHED = {
    "a1": {"n": (9720, 9715), "deaths": (872, 909), "ischaemic_stroke": (2.8, 3.9), "haemorrhagic_stroke": (0.9, 0.8)},
    "a2": {"n": (9717, 9718), "deaths": (876, 905), "ischaemic_stroke": (2.9, 3.8), "haemorrhagic_stroke": (1.2, 0.4)},
}


@pytest.mark.parametrize("drug", PUBLISHED)
def test_the_shipped_patients_are_those_of_the_publication(drug):
    raw, wanted = pd.read_parquet(DATA), PUBLISHED[drug]
    got = raw["arm"].isin([drug, "a3"])
    groups = raw[got], raw[~got]
    assert tuple(map(len, groups)) == wanted["n"]
    assert tuple(int(each["death_14d"].sum()) for each in groups) == wanted["deaths"]
    for event in ("ischaemic_stroke", "haemorrhagic_stroke"):
        happened = [each[list(EVENTS[event][1])].max(axis=1) for each in groups]
        assert tuple(round(100 * float(each.mean()), 1) for each in happened) == wanted[event]


def test_patients_whose_features_are_unknown_are_left_out(patients):
    raw = pd.read_parquet(DATA)
    other = raw["stroke_type"] == "OTH"
    pilot = raw["atrial_fibrillation"].isna()
    assert (int(pilot.sum()), int(other.sum())) == (984, 57)
    assert len(patients) == 19_435 - int((pilot | other).sum()) == 18_404
    for feature in FEATURES:
        assert set(patients[feature]) == set(levels_of(feature))


@pytest.mark.parametrize(
    ("feature", "column", "ends"),
    [
        ("age", "age", {"16-49": 49, "50-59": 59, "60-69": 69, "70-79": 79}),
        ("hours_since_onset", "hours_since_onset", {"0-6": 6, "7-12": 12, "13-24": 24}),
        ("systolic_pressure", "systolic_bp", {"< 140": 139, "140-159": 159, "160-179": 179}),
    ],
)
def test_bands_hold_what_they_say(patients, feature, column, ends):
    values = read_columns()[column].to_numpy()
    largest = pd.Series(values).groupby(patients[feature].to_numpy()).max()
    smallest = pd.Series(values).groupby(patients[feature].to_numpy()).min()
    for (level, end), following in zip(ends.items(), levels_of(feature)[1:], strict=True):
        assert largest[level] == end
        assert smallest[following] == end + 1


def test_every_arm_is_halved(patients, half):
    counts = pd.crosstab(patients["arm"], half)
    assert ((counts[False] - counts[True]).isin([0, 1])).all()


@settings(max_examples=25)
@given(st.integers(0, 2**32 - 1))
def test_the_fit_is_the_largest_posterior_and_its_covariance_the_inverse_information(seed):
    rng = np.random.default_rng(seed)
    design = np.column_stack([np.ones(300), rng.integers(0, 2, (300, 3))])
    chance = -np.expm1(-np.exp(design @ [-1.5, 0.5, -0.5, 0.0]))
    happened, precision = (rng.random(300) < chance).astype(float), np.array([0, 0, 1.0, 4.0])
    found = fit(design, happened, precision)

    def posterior(b):
        hazard = np.exp(design @ b)
        likelihood = np.where(happened == 1, np.log(-np.expm1(-hazard)), -hazard).sum()
        return likelihood - 0.5 * precision @ b**2

    at = posterior(found.estimates)
    for direction in (*np.eye(4), *rng.normal(size=(8, 4))):
        for step in (-1e-3, 1e-3):
            assert posterior(found.estimates + step * direction) < at
    assert found.log_likelihood == pytest.approx(at + 0.5 * precision @ found.estimates**2)
    # The information: mean of the score times itself, summed over both things that may happen to each patient.
    hazard = np.exp(design @ found.estimates)
    p = -np.expm1(-hazard)
    information = sum(
        chance * np.outer(row * factor, row * factor)
        for row, *both in zip(design, p, 1 - p, hazard * (1 - p) / p, -hazard, strict=True)
        for chance, factor in (both[::2], both[1::2])
    )
    assert np.linalg.inv(found.covariance) == pytest.approx(information + np.diag(precision), rel=1e-6, abs=1e-9)


def test_two_groups_have_the_ratio_of_their_hazards():
    design = np.column_stack([np.ones(100), np.repeat([0.0, 1.0], 50)])
    happened = np.concatenate([np.arange(50) < 20, np.arange(50) < 10]).astype(float)
    found = fit(design, happened, np.zeros(2))
    assert np.exp(found.estimates) == pytest.approx([-np.log(0.6), np.log(0.8) / np.log(0.6)])


def numbers(value):
    """All numbers of a parsed file, in its order, and everything else."""
    if isinstance(value, dict):
        return [each for key, inner in value.items() for each in (key, *numbers(inner))]
    if isinstance(value, list):
        return [each for inner in value for each in numbers(inner)]
    return [value]


def test_the_script_writes_the_built_in_scenario(tmp_path):
    main(["--out", str(tmp_path / "stroke.toml")])
    made, shipped = (
        numbers(tomllib.loads(path.read_text(encoding="utf-8"))) for path in (tmp_path / "stroke.toml", SCENARIO)
    )
    assert [each for each in made if isinstance(each, str)] == [each for each in shipped if isinstance(each, str)]
    # All are written to three or four digits: another machine may round the last one the other way.
    ours, theirs = ([each for each in both if not isinstance(each, str)] for both in (made, shipped))
    assert ours == pytest.approx(theirs, rel=0.011, abs=1.01e-4)


def test_comments_of_the_file_say_what_was_fitted(found, patients, half):
    text = SCENARIO.read_text(encoding="utf-8")
    counts = ", ".join(f"{outcome} {patients.loc[half, outcome].sum()}" for outcome in OUTCOMES)
    assert counts in " ".join(line.removeprefix("#").strip() for line in text.splitlines())
    for features, most in APART.items():
        assert f"at most {most:g}" in text
        assert found.apart(features).max() <= most


def test_the_scenario_foretells_the_other_half(found):
    assert len(found.cells) == len(OUTCOMES) * len(ARMS) * 5
    assert (
        found.cells.groupby(["outcome", "arm"])["patients"]
        .sum()
        .eq([int((~found.fitted & (found.patients["arm"] == arm)).sum()) for _ in OUTCOMES for arm in ARMS])
        .all()
    )
    assert found.cells["inside"].mean() >= WANTED


def swapped(scenario):
    return replace(scenario, treatments=dict(zip(ARMS, reversed(scenario.treatments.values()), strict=True)))


def without_effects(scenario):
    return replace(scenario, treatments=dict.fromkeys(ARMS, scenario.treatments["a0"]))


def twice_the_baseline(scenario):
    return replace(
        scenario, events={name: replace(each, baseline=2 * each.baseline) for name, each in scenario.events.items()}
    )


def test_another_half_is_fitted_and_compared_as_this_one_was(found):
    # The scenario's numbers have three digits.
    (inside,) = other_halves(found.patients, [SEED])
    assert abs(inside - found.cells["inside"].sum()) <= 1


@pytest.mark.parametrize("planted", [swapped, without_effects, twice_the_baseline])
def test_a_wrong_scenario_does_not(found, planted):
    assert replace(found, scenario=planted(found.scenario)).cells["inside"].mean() < WANTED


def test_risks_differ_between_the_groups(found):
    cells = found.cells[found.cells["outcome"] == DEATH]
    by_group = cells.groupby("group")[["observed", "patients"]].sum()
    rates = by_group["observed"] / by_group["patients"]
    assert rates.is_monotonic_increasing
    assert rates.iloc[-1] > 10 * rates.iloc[0]


@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=8))
def test_a_band_leaves_at_most_a_fortieth_on_each_side(chances):
    low, high = band(np.array(chances))
    below = above = 0.0
    for happened in itertools.product((0, 1), repeat=len(chances)):
        weight = np.prod([chance if event else 1 - chance for chance, event in zip(chances, happened, strict=True)])
        below += weight * (sum(happened) < low)
        above += weight * (sum(happened) > high)
    assert below <= 0.025 + 1e-12
    assert above <= 0.025 + 1e-12


def test_the_trial_and_the_scenario_answer_the_same_question_alike(found):
    """Who has an event under each treatment, and what that is worth: of the trial's log, and of the scenario."""
    arms = found.arms
    assert arms["expected"].between(arms["low"], arms["high"]).mean() >= WANTED
    problem = ps.build_problem(ps.load_study("stroke"))
    value = -found.patients[list(OUTCOMES)] @ pd.Series(found.scenario.weights)[list(OUTCOMES)]
    for arm, expected in zip(ARMS, problem.fixed_values, strict=True):
        of_arm = value[found.patients["arm"] == arm]
        assert abs(of_arm.mean() - expected) < 1.96 * of_arm.sem()


@pytest.mark.parametrize(
    ("name", "epsilon"), [("best-fixed", 1.0), ("greedy", 1.0), ("optimal", 1.0), ("optimal", 4.0)]
)
def test_policies_are_worth_in_the_log_what_the_scenario_says(found, name, epsilon):
    """By inverse propensities, a quarter each, over the patients to whom nothing was fitted."""
    problem = ps.build_problem(ps.load_study("stroke"))
    chances = ps.make_policy(name, epsilon=epsilon).probabilities(problem)
    log = found.patients[~found.fitted]
    reward = -log[list(OUTCOMES)] @ pd.Series(found.scenario.weights)[list(OUTCOMES)]
    arms = log["arm"].map(list(ARMS).index).to_numpy()
    weighted = chances[found.scenario.space.encode(log), arms] / 0.25 * reward
    assert abs(weighted.mean() - problem.value(chances)) < 1.96 * weighted.sem()


def test_death_without_treatment_is_that_of_the_fit(found, patients, half):
    """The language solves for the severity of death; the regression has a baseline of its own."""
    hazard = fit_hazard(patients, half, DEATH)
    risk = np.ones(len(patients))
    for feature, risks in hazard.risks.items():
        risk *= patients[feature].map(dict(zip(levels_of(feature), risks, strict=True))).to_numpy()
    fitted = -np.expm1(-hazard.baseline.value * risk)
    assert found.chances[:, 0, OUTCOMES.index(DEATH)] == pytest.approx(fitted, rel=0.01)


def test_the_deficits_are_those_that_tell_about_death(patients, half):
    assert telling_deficits(read_columns(), patients, half) == ["arm_or_hand", "hemianopia"]


def test_nobody_who_got_both_departs_from_the_product(patients, half):
    assert min(fit_hazard(patients, half, outcome).combined for outcome in OUTCOMES) > LEVEL


def test_no_record_is_impossible_and_the_product_has_the_shares_of_both_features(found, patients):
    assert prior(found.scenario).min() > 0
    numbers_by, factors = product_of_shares(patients)
    expected = patients["age"].map(numbers_by) * patients["stroke_type"].map(factors)
    for feature in ("age", "stroke_type"):
        both = (
            pd.DataFrame({"made": expected, "seen": patients["atrial_fibrillation"]}).groupby(patients[feature]).mean()
        )
        assert both["made"].to_numpy() == pytest.approx(both["seen"].to_numpy(), rel=1e-6)


def test_weights_are_those_of_what_was_lost(patients):
    """Where the state at six months follows from the outcomes alone, the weights are known."""
    n = len(patients)
    rng = np.random.default_rng(0)
    made = patients.assign(outcome_6m="recovered", **dict.fromkeys(OUTCOMES, 0))
    dead, stroke = rng.random(n) < 0.2, rng.random(n) < 0.3
    made[DEATH], made["ischaemic_stroke"] = dead.astype(int), stroke.astype(int)
    for event in list(EVENTS)[1:]:
        made[event] = (rng.random(n) < 0.1).astype(int)
    # Half of those with a stroke are dependent, all of the dead are dead.
    made.loc[stroke & (rng.random(n) < 0.5), "outcome_6m"] = "dependent"
    made.loc[dead, "outcome_6m"] = "dead"
    found = fit_weights(made)
    # Among the living a stroke loses half of what dependence loses; the dead have no more to lose.
    design = np.column_stack([np.ones(n), dead, stroke])
    lost = made["outcome_6m"].map(LOSSES["stated"]).to_numpy()
    _, of_death, of_stroke = np.linalg.lstsq(design, lost)[0]
    assert found["ischaemic_stroke"].value == pytest.approx(of_stroke / of_death, rel=0.01)
    assert found["major_bleed"].low < 0 < found["major_bleed"].high < 0.1
    for estimate in found.values():
        assert estimate.low <= estimate.value <= estimate.high


def test_a_ratio_that_does_depend_on_a_feature_is_found(patients, half):
    rng = np.random.default_rng(1)
    only_men = (patients["sex"] == "male") & patients["arm"].isin(["a2", "a3"])
    made = patients.assign(major_bleed=(rng.random(len(patients)) < np.where(only_men, 0.10, 0.02)).astype(int))
    seen = departures(made, half, ["major_bleed"]).set_index(["outcome", "drug", "feature"])["p"]
    assert seen["major_bleed", "a2", "sex"] < 1e-4
    assert seen["major_bleed", "a1", "sex"] > 1e-3


def test_the_page_says_how_many_groups_are_within(found):
    chances = {"fitted half": [0.04, 0.002], "other half": [0.03, 0.6]}
    seen = pd.DataFrame({"outcome": DEATH, "drug": "a1", "feature": ["age", "sex"], **chances})
    said = findings(found, seen, [90, 92])
    assert "The smallest p in the fitted half is 0.002" in said.lead[2]
    assert "1 of the tests is below 0.05 in both halves" in said.lead[2]
    assert "between 90 and 92 groups are within their bands, 91 on average" in said.lead[1]
    inside = int(found.cells["inside"].sum())
    assert f"Of 100 groups of patients to whom nothing was fitted, {inside} have" in said.lead[0]
    assert sum(row.agreement == "in the band" for row in said.rows) == inside
    folder = Path(__file__).parents[2] / "reports" / "stroke-calibration"
    committed = pd.read_csv(folder / "figures" / "predicted-and-observed.csv")
    assert (committed["observed"] == found.cells["observed"]).all()
    assert committed["predicted"].to_numpy() == pytest.approx(found.cells["predicted"].to_numpy(), rel=0.01)
