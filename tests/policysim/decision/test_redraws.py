"""Redrawn numbers: intervals are what their ends say, rules stay possible, and nothing else moves."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from small_studies import write_small_study

from envs.scenario import TreatmentRule, numbers_of
from envs.treatment_response import own_number
from policies.reference import BestFixed
from policysim.decision import redraws
from policysim.decision.redraws import LOGARITHM, ODDS, PLAIN, Redraws, redrawn_number
from policysim.study.study_problem import build_problem
from policysim.study.study_reader import load_study
from policysim.utility import Utility

WIDER = (2.0, 3.0)
LANGUAGE = Path(__file__).parents[2] / "envs" / "data" / "language.toml"


@pytest.fixture(scope="module")
def language(tmp_path_factory):
    """A study of a scenario that says everything a scenario can."""
    folder = tmp_path_factory.mktemp("language")
    (folder / "language.toml").write_text(LANGUAGE.read_text())
    path = folder / "study.toml"
    path.write_text(
        'scenario = "language.toml"\n[privacy]\npublic = ["pregnancy", "age", "asthma", "clots", "fever"]\n'
    )
    return load_study(path)


@given(
    value=st.floats(0.05, 0.95),
    ends=st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)),
    scale=st.sampled_from([ODDS, LOGARITHM, PLAIN]),
)
def test_the_ends_of_an_interval_are_its_quantiles_and_the_number_the_median(value, ends, scale):
    at = scale.of(value)
    interval = scale.back(at - ends[0]), scale.back(at + ends[1])
    found = [redrawn_number(value, float(norm.ppf(q)), scale, interval) for q in (0.025, 0.5, 0.975)]
    assert found == pytest.approx([interval[0], value, interval[1]], rel=1e-9)


@pytest.mark.parametrize(
    ("value", "scale", "interval", "expected"),
    [
        (0.0, ODDS, None, 0.0),
        (1.0, ODDS, (0.9, 1.0), 1.0),
        (0.0, LOGARITHM, (0.0, 2.0), 0.0),
        (0.3, ODDS, (0.0, 1.0), 0.3),
    ],
)
def test_what_has_no_place_on_its_scale_stays(value, scale, interval, expected):
    assert redrawn_number(value, 1.7, scale, interval) == expected


def test_an_end_without_a_place_counts_as_far_as_the_other():
    # 0 has no logarithm: below, the number is divided by what it is multiplied with above.
    assert redrawn_number(0.1, -redraws.Z, LOGARITHM, (0.0, 0.2)) == pytest.approx(0.05)


def test_numbers_with_an_interval_come_from_it_and_others_by_the_default_spread(language):
    rng = np.random.default_rng(3)
    drawn = [Redraws(language).draw(rng) for _ in range(1000)]
    within = 5 * (0.95 * 0.05 / 1000) ** 0.5
    stated = {
        "clears": ([s.treatments["antiviral"].clears["infected"] for s, _ in drawn], (0.5, 0.7)),
        "ratio": ([s.treatments["antiviral"].hazard_ratio["stroke"] for s, _ in drawn], (0.8, 1.8)),
        "rule": ([s.treatments["antiviral"].rules[0].changes["clears.infected"][1] for s, _ in drawn], (0.5, 0.7)),
        "cost": ([u.costs["antiviral"] for _, u in drawn], (0.01, 0.06)),
        "baseline": ([s.events["stroke"].baseline for s, _ in drawn], (0.005, 0.02)),
        "risk": ([s.events["stroke"].relative_risk["age"][1] for s, _ in drawn], (2.0, 4.5)),
        "clearing": ([s.natural_clearing["infected"] for s, _ in drawn], (0.05, 0.2)),
        "weight": ([u.weights["stroke"] for _, u in drawn], (3.0, 8.0)),
    }
    for name, (values, (low, high)) in stated.items():
        inside = np.mean((np.array(values) > low) & (np.array(values) < high))
        assert inside == pytest.approx(0.95, abs=within), name
    default = np.log([s.treatments["heparin"].hazard_ratio["stroke"] for s, _ in drawn])
    assert default.std() == pytest.approx(redraws.SPREAD, abs=5 * redraws.SPREAD / 2000**0.5)
    # What states no interval and is no treatment's stays.
    for scenario, utility in drawn[:20]:
        assert scenario.death == language.scenario.death
        assert scenario.rules == language.scenario.rules
        assert scenario.events["stroke"].hazard == language.scenario.events["stroke"].hazard
        assert utility.weights["death"] == 10
    assert Redraws(language).rescales  # natural clearing has an interval
    assert not Redraws(load_study("covid")).rescales


def rules_at_the_edge(language):
    """A study whose rules make half of the draws of a number impossible."""
    high = replace(language.scenario.treatments["antiviral"], clears={"infected": 0.95, "fever": 0.1})
    scenario = replace(language.scenario, treatments={**language.scenario.treatments, "antiviral": high}, intervals={})
    return replace(language, scenario=scenario, utility=Utility.of(scenario))


def test_a_wider_spread_moves_the_same_numbers_the_same_way_and_what_states_an_interval_not(language):
    once, twice = ([Redraws(language, times).draw(rng) for _ in range(30)] for times, rng in two_spreads())
    stated = language.scenario.treatments["heparin"].hazard_ratio["stroke"]
    # What a rule without an interval can make impossible is drawn anew with it.
    kept = [key for key in language.scenario.intervals if not key.endswith("clears.infected")]
    assert len(kept) > 4
    for (scenario, utility), (wider, of_wider) in zip(once, twice, strict=True):
        numbers, others = numbers_of(scenario), numbers_of(wider)
        assert [others[key] for key in kept] == [numbers[key] for key in kept]
        assert of_wider.weights == utility.weights
        step = np.log(scenario.treatments["heparin"].hazard_ratio["stroke"] / stated)
        assert wider.treatments["heparin"].hazard_ratio["stroke"] == pytest.approx(stated * np.exp(2 * step))


def two_spreads():
    """The default spread and twice as much, each with the same random numbers."""
    return [(times, np.random.default_rng(5)) for times in (1.0, 2.0)]


def test_a_draw_that_rules_refuse_leaves_the_random_numbers_of_all_others(language):
    study = rules_at_the_edge(language)
    costs = []
    for times in (1.0, 3.0):
        drawn = [Redraws(study, times).draw(rng) for rng in [np.random.default_rng(2)] for _ in range(50)]
        costs.append(np.log([[cost for cost in utility.costs.values() if cost] for _, utility in drawn]))
    stated = np.log([cost for cost in study.utility.costs.values() if cost])
    assert costs[1] - stated == pytest.approx(3 * (costs[0] - stated))


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_rules_never_take_a_redrawn_probability_out_of_range(language, seed):
    drawn = Redraws(rules_at_the_edge(language)).draw(np.random.default_rng(seed))[0]
    for target in ("clears.infected", "side_effects.fever", "side_effects.clots"):
        made = own_number(drawn, "antiviral", target)
        assert 0 <= made.min() <= made.max() <= 1


def test_what_no_draw_makes_possible_stays_as_stated(language, monkeypatch):
    monkeypatch.setattr(redraws, "ATTEMPTS", 3)
    monkeypatch.setattr(Redraws, "_possible", lambda *_: False)
    drawn = Redraws(language).draw(np.random.default_rng(0))[0].treatments
    stated = language.scenario.treatments
    assert drawn["antiviral"].rules == stated["antiviral"].rules
    assert drawn["antiviral"].clears["infected"] == stated["antiviral"].clears["infected"]
    # No rule reads this one, so that it cannot become impossible.
    assert drawn["antiviral"].clears["fever"] != stated["antiviral"].clears["fever"]


def test_many_rules_at_the_edge_are_drawn_one_number_at_a_time(language):
    """Each number alone is possible in half of the draws, all twenty together in one of a million."""
    flags = [f"flag{i}" for i in range(20)]
    treatment = language.scenario.treatments["antiviral"]
    edge = replace(
        treatment,
        clears=dict.fromkeys(flags, 0.5),
        side_effects={},
        rules=(TreatmentRule(changes={f"clears.{flag}": ("multiply", 2.0) for flag in flags}),),
    )
    scenario = replace(language.scenario, treatments={"antiviral": edge}, intervals={})
    study = replace(language, scenario=scenario, utility=Utility.of(scenario))
    drawn = Redraws(study).draw(np.random.default_rng(7))[0]
    made = [own_number(drawn, "antiviral", f"clears.{flag}").item() for flag in flags]
    assert all(0 < number <= 1 for number in made)
    assert len(set(made)) == 20  # and none stayed as stated


def test_all_numbers_that_are_drawn_are_counted(language):
    found = Redraws(language)
    # Of treatments: 3 intervals and 1 of a rule; elsewhere: clearing, 2 of stroke, 1 of bleeding; 1 weight.
    assert found.drawn["stated"] == 4 + 4 + 1
    moved_by_default = 0
    zero, one = (found.draw(_Constant(z)) for z in (0.0, 1.0))
    for name, treatment in zero[0].treatments.items():
        other = one[0].treatments[name]
        for part in ("clears", "side_effects", "hazard_ratio"):
            moved_by_default += sum(getattr(other, part)[key] != v for key, v in getattr(treatment, part).items())
        for here, there in zip(treatment.rules, other.rules, strict=True):
            moved_by_default += sum(there.changes[key] != change for key, change in here.changes.items())
        moved_by_default += zero[1].costs[name] != one[1].costs[name]
    assert found.drawn["default"] == moved_by_default - 4


class _Constant:
    """Draws that are all the same."""

    def __init__(self, z):
        self._z = z

    def normal(self, size=None):
        return self._z if size is None else np.full(size, self._z)


@pytest.fixture(scope="module")
def together(tmp_path_factory):
    """A study of the same scenario with redraws beside it: what raises the one ratio lowers the other."""
    folder = tmp_path_factory.mktemp("together")
    keys = ["treatments.antiviral.hazard_ratio.stroke", "treatments.heparin.hazard_ratio.stroke", "weights.stroke"]
    rows = [f"{draw},{1 + draw / 100},{1 / (1 + draw / 100)},{draw}" for draw in range(1, 31)]
    (folder / "redraws.csv").write_text("\n".join([",".join(["draw", *keys]), *rows]) + "\n")
    (folder / "language.toml").write_text(f'redraws = "redraws.csv"\n{LANGUAGE.read_text()}')
    public = 'public = ["pregnancy", "age", "asthma", "clots", "fever"]'
    (folder / "study.toml").write_text(f'scenario = "language.toml"\n[privacy]\n{public}\n')
    return load_study(folder / "study.toml")


def test_redraws_beside_a_scenario_are_its_draws_and_nothing_else_moves(together):
    found = Redraws(together)
    draws = found.draws(np.random.default_rng(0))
    assert found.drawn == {"together": 3}
    assert len(draws) == 30
    for place, (scenario, utility) in enumerate(draws, start=1):
        ratios = [scenario.treatments[name].hazard_ratio["stroke"] for name in ("antiviral", "heparin")]
        assert ratios == [1 + place / 100, 1 / (1 + place / 100)]
        # Drawn one by one, the product would not stay.
        assert np.prod(ratios) == pytest.approx(1)
        assert utility.weights["stroke"] == place
        unmoved = numbers_of(scenario).items() - numbers_of(together.scenario).items()
        assert {key for key, _ in unmoved} <= set(together.scenario.redraws.numbers)
        assert utility.costs == together.utility.costs


def test_a_weight_that_the_study_states_stays(together):
    own = Utility({**together.utility.weights, "stroke": 7.5}, together.utility.costs)
    draws = Redraws(replace(together, utility=own)).draws(np.random.default_rng(0))
    assert {utility.weights["stroke"] for _, utility in draws} == {7.5}


def test_certainty_is_that_of_the_redraws_beside_the_scenario(together):
    """Each option is evaluated under each row's numbers, as a problem that is built of them."""
    problem = build_problem(together)
    found = redraws.redrawn(together, problem, [])
    values = found.options.pivot(index="draw", columns="option", values="value")
    assert found.options["lead_weight"].eq(10).all()  # of death, which has no interval
    leads = redraws.redrawn(replace(together, lead="stroke"), problem, []).options
    assert leads.groupby("draw")["lead_weight"].unique().map(list).tolist() == [[weight] for weight in range(1, 31)]
    assert found.drawn == {"together": 3}
    for draw, (scenario, utility) in enumerate(Redraws(together).draws(np.random.default_rng(0))):
        built = build_problem(replace(together, scenario=scenario, utility=utility))
        expected = [
            built.value(BestFixed(action=place).probabilities(problem)) for place in range(len(problem.actions))
        ]
        assert values.loc[draw, [f"for all: {action}" for action in problem.actions]].tolist() == pytest.approx(
            expected
        )


def test_a_folder_keeps_the_redraws_with_the_scenario(together):
    assert set(together.files) == {"study.toml", "language.toml", "redraws.csv"}
    assert together.files["redraws.csv"].decode() == together.scenario.redraws.text
    assert "redraws_sha256" in together.identity


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A study without intervals, and few draws."""
    monkeypatch.setattr(redraws, "REDRAWS", 12)
    return load_study(write_small_study(tmp_path))


def test_versions_with_a_wider_spread_are_those_of_a_wider_default(small, monkeypatch):
    problem, policies = build_problem(small), [small.policy("optimal", 1.0)]
    found, again = (redraws.redrawn(small, problem, policies, times=WIDER) for _ in range(2))
    assert found.wider.equals(again.wider)
    assert found.options.equals(redraws.redrawn(small, problem, policies).options)
    assert found.wider["times"].unique().tolist() == list(WIDER)
    made = Redraws.__init__
    for times, rows in found.wider.groupby("times"):
        # The whole model again, with another default.
        monkeypatch.setattr(Redraws, "__init__", lambda self, study, _=1.0, times=times: made(self, study, times))
        table = redraws.redrawn(small, problem, policies).options[["draw", "option", "value"]]
        assert rows[["draw", "option"]].to_numpy().tolist() == table[["draw", "option"]].to_numpy().tolist()
        assert rows["value"].to_numpy() == pytest.approx(table["value"].to_numpy())


def test_where_nothing_moves_by_default_nothing_is_wider(small):
    numbers = numbers_of(small.scenario)
    treated = {key: value for key, value in numbers.items() if key.startswith("treatments.") and value}
    intervals = {key: (value * 0.9, min(1.0, value * 1.05)) for key, value in treated.items()}
    stated = replace(small, scenario=replace(small.scenario, intervals=intervals))
    found = redraws.redrawn(stated, build_problem(stated), [], times=WIDER)
    assert found.drawn["default"] == 0
    assert found.wider.empty
