"""The scenario of the International Stroke Trial, against what the trial published and planted mistakes."""

import itertools
import tomllib
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_limits

import policysim as ps
from envs.cohort import prior
from envs.treatment_response import ResponseModel
from examples.experiments.stroke_calibration import (
    LEVEL,
    band,
    calibration,
    compare,
    departures,
    held_out,
    other_halves,
    readme,
)
from examples.experiments.stroke_fit import LOSSES, fit, fit_hazard, fit_weights, refits, telling_deficits
from examples.experiments.stroke_scenario import APART, SCENARIO, Fitted, main, product_of_shares, write_scenario
from examples.experiments.stroke_trial import (
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
from examples.reporting import REPORTS
from policies.records import encode

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


@pytest.fixture(scope="module")
def fitted(patients):
    return Fitted.to(patients)


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


def numbers(value):
    """All numbers of a parsed file, in its order, and everything else."""
    if isinstance(value, dict):
        return [each for key, inner in value.items() for each in (key, *numbers(inner))]
    if isinstance(value, list):
        return [each for inner in value for each in numbers(inner)]
    return [value]


def test_the_script_writes_the_built_in_scenario(fitted, tmp_path):
    """Text, numbers, and the first redraws: each draw takes up the stream of the one before."""
    write_scenario(fitted, tmp_path / "stroke.toml", draws=4)
    paths = tmp_path / "stroke.toml", SCENARIO
    texts = [path.read_text(encoding="utf-8").replace("4 times", "200 times") for path in paths]
    assert texts[0].count("200 times") == 1
    made, shipped = (numbers(tomllib.loads(text)) for text in texts)
    assert [each for each in made if isinstance(each, str)] == [each for each in shipped if isinstance(each, str)]
    # All are written to three or four digits: another machine may round the last one the other way.
    ours, theirs = ([each for each in both if not isinstance(each, str)] for both in (made, shipped))
    assert ours == pytest.approx(theirs, rel=0.011, abs=1.01e-4)
    redrawn = [pd.read_csv(path.with_name("stroke-redraws.csv")) for path in paths]
    assert list(redrawn[0]) == list(redrawn[1])
    assert len(redrawn[1]) == 200
    assert redrawn[0].to_numpy() == pytest.approx(redrawn[1].head(4).to_numpy(), rel=2e-3)


def test_the_command_line_takes_another_file(monkeypatch, tmp_path):
    seen = []
    monkeypatch.setattr(
        "examples.experiments.stroke_scenario.write_scenario",
        lambda *args, **more: seen.append((args[1], more["draws"])),
    )
    monkeypatch.setattr("examples.experiments.stroke_scenario.Fitted.to", len)
    main(["--out", str(tmp_path / "s.toml"), "--draws", "7"])
    assert seen == [(tmp_path / "s.toml", 7)]


def test_a_refit_is_the_fit_to_the_patients_that_were_drawn(patients, fitted):
    """Patients who count n times are as n patients; every arm keeps its size, and all is drawn at once."""
    refit = next(refits(patients, fitted.hazards, seed=3, draws=1))
    rng = np.random.default_rng(3)
    places = [np.flatnonzero(patients["arm"] == arm) for arm in ARMS]
    drawn = patients.iloc[np.concatenate([rng.choice(place, len(place)) for place in places])].reset_index(drop=True)
    assert (drawn["arm"].value_counts() == patients["arm"].value_counts()).all()
    alone = fit_hazard(drawn, "major_bleed")
    assert refit["major_bleed"] == pytest.approx(alone.estimates, abs=1e-6)


def test_redraws_spread_as_intervals_do_and_share_their_controls():
    """Each number's spread is that of its interval; and what is fitted against the same patients moves together."""
    redrawn, stated = pd.read_csv(SCENARIO.with_name("stroke-redraws.csv")), tomllib.loads(SCENARIO.read_text())
    for drug in ("a1", "a2"):
        for outcome, ratio in stated["treatments"][drug]["hazard_ratio"].items():
            logs = np.log(redrawn[f"treatments.{drug}.hazard_ratio.{outcome}"])
            low, high = np.log(ratio["interval"])
            # The standard deviation of 200 draws is known to 5 %: three of these, and the bootstrap's own difference.
            assert logs.std() == pytest.approx((high - low) / (2 * 1.96), rel=0.25)
            assert logs.mean() == pytest.approx(np.log(ratio["value"]), abs=0.3 * logs.std())
    # A higher hazard without treatment goes with lower ratios: their correlation is far below 0.
    for outcome in ("ischaemic_stroke", "death"):
        start = "rules." if outcome == DEATH else f"events.{outcome}.baseline"
        (key,) = (key for key in redrawn if key.startswith(start))
        untreated = redrawn[key]
        ratios = [redrawn[f"treatments.{drug}.hazard_ratio.{outcome}"] for drug in ("a1", "a2")]
        assert max(np.corrcoef(np.log(untreated), np.log(ratio))[0, 1] for ratio in ratios) < -0.15


def test_deaths_without_treatment_have_their_place_in_the_redraws():
    scenario = ps.load_study("stroke").scenario
    (key,) = (key for key in scenario.redraws.numbers if key.startswith("rules."))
    place = int(key.split(".")[1])
    assert scenario.rules[place].changes[DEATH][0] == "set"
    assert np.mean(scenario.redraws.numbers[key]) == pytest.approx(scenario.rules[place].changes[DEATH][1], rel=0.02)


def test_comments_of_the_file_say_what_was_fitted(found, patients):
    text = SCENARIO.read_text(encoding="utf-8")
    counts = ", ".join(f"{outcome} {patients[outcome].sum()}" for outcome in OUTCOMES)
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


def swapped(chances):
    return chances[:, ::-1]


def without_effects(chances):
    return np.repeat(chances[:, :1], len(ARMS), axis=1)


def twice_the_risk(chances):
    return np.minimum(2 * chances, 1)


def test_another_half_is_fitted_and_compared_as_this_one_was(found):
    assert other_halves(found.patients, [SEED]) == [found.cells["inside"].sum()]


@pytest.mark.parametrize("planted", [swapped, without_effects, twice_the_risk])
def test_a_wrong_model_does_not(found, planted):
    assert replace(found, chances=planted(found.chances)).cells["inside"].mean() < WANTED


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
    """By inverse propensities, a quarter each, over all patients."""
    problem = ps.build_problem(ps.load_study("stroke"))
    chances = ps.make_policy(name, epsilon=epsilon).probabilities(problem)
    log = found.patients
    reward = -log[list(OUTCOMES)] @ pd.Series(found.scenario.weights)[list(OUTCOMES)]
    arms = log["arm"].map(list(ARMS).index).to_numpy()
    weighted = chances[encode(found.scenario.space, log), arms] / 0.25 * reward
    assert abs(weighted.mean() - problem.value(chances)) < 1.96 * weighted.sem()


def test_a_value_that_is_held_out_is_of_policies_that_are_made_of_others(found, monkeypatch):
    """One treatment for all: self-normalised weights are those of its own arm; a half counts under the other's."""

    def given_by(patients, others, policies):
        assert list(policies) == ["best-fixed"]
        assert not set(patients.index) & set(others.index)
        best = "a3" if set(others.index) == set(found.patients.index[found.fitted]) else "a1"
        everybody = {arm: np.eye(len(ARMS))[np.full(len(patients), place)] for place, arm in enumerate(ARMS)}
        return {"best-fixed": everybody[best], **everybody}

    monkeypatch.setattr("examples.experiments.stroke_calibration.given_by", given_by)
    worth = held_out(found.patients, found.fitted, ["best-fixed"]).set_index("policy")
    known = found.patients[found.patients["outcome_6m"].notna()]
    independent, arm = known["outcome_6m"].isin(["recovered", "not recovered"]), known["arm"]
    for name in ARMS:
        own = independent[arm == name]
        assert worth.loc[name, "value"] == pytest.approx(own.mean())
        assert worth.loc[name, "high"] - worth.loc[name, "low"] == pytest.approx(2 * 1.96 * own.sem(), rel=1e-2)
    mine = arm == np.where(found.fitted[known.index], "a1", "a3")
    assert worth.loc["best-fixed", "value"] == pytest.approx(independent[mine].mean())
    # Of two sets of patients that have none in common, the variances add up; of those in common, nothing is left.
    apart = worth.loc["a0", ["value", "difference", "difference_low"]]
    variance = independent[mine].sem() ** 2 + independent[arm == "a0"].sem() ** 2
    assert apart["difference"] == pytest.approx(apart["value"] - worth.loc["best-fixed", "value"])
    assert apart["difference"] - apart["difference_low"] == pytest.approx(1.96 * variance**0.5, rel=1e-2)
    assert np.isnan(worth.loc["best-fixed", "difference"])


def test_death_without_treatment_is_that_of_the_fit(found, patients, fitted):
    """The language solves for the severity of death; the regression has a baseline of its own."""
    hazard = fitted.hazards[DEATH]
    risk = np.ones(len(patients))
    for feature, risks in hazard.risks.items():
        risk *= patients[feature].map(dict(zip(levels_of(feature), risks, strict=True))).to_numpy()
    risks = -np.expm1(-hazard.baseline.value * risk)
    response = ResponseModel(found.scenario).outcome_probabilities(encode(found.scenario.space, patients))
    assert response[:, 0, OUTCOMES.index(DEATH)] == pytest.approx(risks, rel=0.01)


def test_the_deficits_are_those_that_tell_about_death(patients, half):
    assert telling_deficits(read_columns()[half], patients[half]) == ["arm_or_hand", "hemianopia"]


def test_nobody_who_got_both_departs_from_the_product(fitted):
    assert min(hazard.combined for hazard in fitted.hazards.values()) > LEVEL


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


def test_the_report_says_how_many_groups_are_within(found):
    chances = {"fitted half": [0.04, 0.002], "other half": [0.03, 0.6]}
    tests = pd.DataFrame({"outcome": DEATH, "drug": "a1", "feature": ["age", "sex"], **chances})
    numbers = {"value": 0.37, "low": 0.35, "high": 0.39}
    numbers |= {"difference": -0.01, "difference_low": -0.02, "difference_high": 0.003}
    worth = pd.DataFrame([{"policy": "greedy", **numbers}])
    page = " ".join(readme(found, tests, [90, 92], worth, [-0.02, 0.01]).split())
    inside = int(found.cells["inside"].sum())
    assert f"Of 100 groups of patients to whom nothing was fitted, {inside} have" in page
    assert "between 90 and 92 groups are within their bands, 91 on average" in page
    assert "37.0 of 100 under the best for each, -1.0 (-2.0 to +0.3) against one treatment for all" in page
    assert "with 2 other pairs of halves the difference is -2.0 to +1.0" in page
    assert "The smallest p in the fitted half is 0.002" in page
    assert "1 of the tests is below 0.05 in both halves" in page
    assert [row["agreement"] for row in compare(found.cells)].count("in the band") == inside
    committed = pd.read_csv(REPORTS / "stroke-calibration" / "figures" / "predicted-and-observed.csv")
    assert (committed["observed"] == found.cells["observed"]).all()
    assert committed["predicted"].to_numpy() == pytest.approx(found.cells["predicted"].to_numpy(), rel=0.01)


@pytest.mark.usefixtures("blank_drawings")
def test_reports_of_the_trial_link_to_each_other(tmp_path, monkeypatch):
    """Each page of the trial names the others, and says why they may differ."""
    monkeypatch.setattr("policysim.decision.redraws.REDRAWS", 20)
    pages = dict.fromkeys(("stroke", "ist", "ist-14-days"), "report.html") | {"stroke-calibration": "README.md"}
    studies = {name: REPORTS / name / "study.toml" for name in ("ist", "ist-14-days")} | {"stroke": "stroke"}
    for name, study in studies.items():
        assert set(ps.load_study(study).related) == set(pages) - {name}
    page = (REPORTS / "stroke-calibration" / "README.md").read_text(encoding="utf-8")
    assert all(f"[{name}](../{name}/report.html)" in page for name in studies)
    ps.report("stroke", epsilons=[1.0], policies=["best-fixed", "optimal"]).save(tmp_path)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(f'href="../{name}/{pages[name]}"' in page for name in set(pages) - {"stroke"})
