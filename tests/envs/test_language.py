"""What a scenario can say, on random small scenarios: against enumeration of every outcome of every record."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from brute_force import ByHand
from hypothesis import given, settings
from random_scenarios import scenario_texts
from simulated_days import simulated, tables

import envs
from envs.backup import Backup
from envs.scenario import EventModel, TreatmentRule
from envs.treatment_response import Course, treatment_costs
from policysim.study.study_problem import expected_utilities
from policysim.utility import Utility

FIXED = settings(derandomize=True, deadline=None, database=None, max_examples=25)
# Around every number that a uniform one is compared with.
EDGE = 1e-9


def load(text, path):
    """The scenario of a text, or the reasons why it is none."""
    path.write_text(text, encoding="utf-8")
    try:
        return envs.load_scenario(path)
    except envs.InputFileError as error:
        return str(error)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("random") / "random.toml"


def check_tables(scenario):
    """Every table is the enumeration of all outcomes."""
    by_hand, response = ByHand(scenario, 1), envs.ResponseModel(scenario)
    records, n_flags = list(by_hand.records()), len(scenario.transient)
    shape = len(records), len(scenario.actions)
    wanted, costs, allowed = np.empty((*shape, len(scenario.outcomes))), np.empty(shape), np.empty(shape, dtype=bool)
    for (record, values), (action, name) in itertools.product(enumerate(records), enumerate(scenario.actions)):
        likely, dies = by_hand.day(values, name)
        events = [by_hand.event(values, name, each) for each in scenario.events]
        wanted[record, action] = likely @ np.column_stack([by_hand.evenings, *events, dies])
        costs[record, action] = by_hand.own(values, name, "cost")
        allowed[record, action] = by_hand.allowed(values, name)
    found = np.stack([response.probability(name) for name in scenario.outcomes], axis=2)
    assert np.abs(found - wanted).max() <= 1e-12
    assert np.abs(response.outcome_probabilities(np.arange(len(records))) - wanted).max() <= 1e-12
    assert np.abs(response.probability(*scenario.transient) - wanted[:, :, :n_flags].sum(axis=2)).max() <= 1e-12
    for column, cost in zip(costs.T, treatment_costs(scenario), strict=True):
        assert np.abs(np.broadcast_to(cost, scenario.space.shape).ravel() - column).max() <= 1e-12
    assert allowed.all() if response.admissible is None else np.array_equal(response.admissible, allowed)
    utilities = expected_utilities(response, Utility.of(scenario))
    assert np.abs(utilities - by_hand.rewards()).max() <= 1e-12
    # What the rules for death say is the mean of the untreated.
    weight = envs.prior(scenario)
    assert weight @ found[:, 0, -1] == pytest.approx(scenario.rules[0].changes["death"][1], abs=1e-9)


def check_days(scenario):
    """Expectations and masses go through the dense matrix."""
    by_hand, rng = ByHand(scenario, 3), np.random.default_rng(1)
    course = Course(envs.ResponseModel(scenario), 3)
    matrices, backup = by_hand.matrices(), Backup(course)
    values = rng.normal(size=matrices.shape[1])
    assert np.abs(backup.continuation(values) - np.einsum("axz,z->xa", matrices, values)).max() <= 1e-12
    assert np.abs(backup.continuation(values, actions=[1])[:, 0] - matrices[1] @ values).max() <= 1e-12
    # Two days forwards, of a random policy; then one action only.
    policy = rng.dirichlet(np.ones(len(matrices)), size=matrices.shape[1])
    mass = wanted = envs.prior(scenario)
    for _ in range(2):
        mass, wanted = backup.push(mass, policy), np.einsum("x,xa,axz->z", wanted, policy, matrices)
    assert np.abs(mass - wanted).max() <= 1e-12
    alone = backup.push(envs.prior(scenario), np.ones((len(mass), 1)), actions=[1])
    assert np.abs(alone - envs.prior(scenario) @ matrices[1]).max() <= 1e-12
    # Two days back are the mean over every path.
    rewards, value = by_hand.rewards(), np.zeros(len(mass))
    assert np.abs(expected_utilities(course.response, Utility.of(scenario)) - rewards).max() <= 1e-12
    for _ in range(2):
        value = (policy * (rewards + backup.continuation(value))).sum(axis=1)
    first = (policy * rewards).sum(axis=1)
    assert np.abs(value - first - np.einsum("xa,axz,z->x", policy, matrices, first)).max() <= 1e-12


def check_numbers(scenario):
    """Fixed parts with the same numbers have the same days, alone and among all."""
    backup = Backup(Course(envs.ResponseModel(scenario), 2))
    every, records = backup.restricted(np.arange(backup.n_fixed))
    _, alike = np.unique(every.numbers, axis=1, return_inverse=True)
    matrices = ByHand(scenario, 2).matrices()
    places = records.reshape(-1, backup.n_fixed)
    for one, other in itertools.combinations(range(backup.n_fixed), 2):
        if alike.ravel()[one] == alike.ravel()[other]:
            mine, theirs = (matrices[:, places[:, part]][:, :, places[:, part]] for part in (one, other))
            assert np.abs(mine - theirs).max() <= 1e-15
    # Some of the fixed parts alone fare as among all.
    part, left = backup.restricted(np.array([3, 1]))
    values = np.random.default_rng(2).normal(size=len(matrices[0]))
    assert np.abs(part.continuation(values[left]) - backup.continuation(values)[left]).max() <= 1e-14


def check_simulation(scenario):
    """The simulation compares its numbers with the probabilities of the definitions, for every evening."""
    by_hand, t = ByHand(scenario, 2), tables(Course(envs.ResponseModel(scenario), 2))
    records, actions, uniforms, wanted = [], [], [], []
    rng = np.random.default_rng(3)
    for values, (action, name) in itertools.product(by_hand.records(), enumerate(scenario.actions)):
        likely, dies = by_hand.day(values, name)
        absent = np.array([1 - by_hand.present(values, name, flag) for flag in scenario.transient])
        evening = int(rng.choice(len(likely), p=likely))
        spared = [1 - each[evening] for each in (*(by_hand.event(values, name, e) for e in scenario.events), dies)]
        came = rng.random(len(spared)) < 0.5
        happened = np.array([*by_hand.evenings[evening], *came], dtype=bool)
        records.append(scenario.space.record(values))
        actions.append(action)
        uniforms.append(np.array([*absent, *spared]) + np.where(happened, EDGE, -EDGE))
        wanted.append(happened)
    outcomes, _ = simulated(t, scenario, np.array(records), np.array(actions), np.array(uniforms))
    assert np.array_equal(outcomes, wanted)


def test_random_scenarios_are_what_the_definitions_say(path):
    seen = dict.fromkeys(("rules", "events", "intervals", "masks", "combined"), 0)

    @FIXED
    @given(text=scenario_texts())
    def check(text):
        scenario = load(text, path)
        if isinstance(scenario, str):
            # Refused for what its rules make together, by itself a matter of other tests.
            assert all(": rules[" in line or "treatments." in line for line in scenario.splitlines())
            return
        check_tables(scenario)
        check_days(scenario)
        check_numbers(scenario)
        check_simulation(scenario)
        treatments = scenario.treatments.values()
        seen["rules"] += any(each.rules for each in treatments)
        seen["events"] += bool(scenario.events)
        seen["intervals"] += bool(scenario.intervals)
        seen["masks"] += bool(scenario.contraindication_features)
        seen["combined"] += any(each.combines for each in treatments)

    check()
    assert min(seen.values()) >= 4, seen


def test_the_file_is_read_as_it_stands():
    language = envs.load_scenario(Path(__file__).parent / "data" / "language.toml")
    assert language.outcomes == ("infected", "fever", "clots", "stroke", "bleeding", "death")
    assert [language.outcome_title(name) for name in ("stroke", "bleeding", "death")] == [
        "ischaemic stroke", "bleeding", "death",
    ]  # fmt: skip
    assert language.contraindication_features == ("fever", "clots", "asthma", "pregnancy", "age")
    assert language.costs_by_record
    assert language.intervals == {
        "natural_clearing.infected": (0.05, 0.2),
        "treatments.antiviral.cost": (0.01, 0.06),
        "treatments.antiviral.clears.infected": (0.5, 0.7),
        "treatments.antiviral.hazard_ratio.stroke": (0.8, 1.8),
        "treatments.antiviral.rules.0.multiply.clears.infected": (0.5, 0.7),
        "events.stroke.baseline": (0.005, 0.02),
        "events.stroke.relative_risk.age.1": (2.0, 4.5),
        "events.bleeding.hazard.fever": (0.0, 0.2),
        "weights.stroke": (3.0, 8.0),
    }
    antiviral = language.treatments["antiviral"]
    assert antiviral.contraindicated == ({"pregnancy": (1,)}, {"age": ("old",), "asthma": (1,)})
    assert antiviral.hazard_ratio == {"death": 0.9, "stroke": 1.2}
    assert antiviral.rules[0] == TreatmentRule(
        when={"age": ("old",)},
        changes={
            "clears.infected": ("multiply", 0.6),
            "side_effects.fever": ("multiply", 1.5),
            "cost": ("multiply", 2.0),
        },
        source="illustrative",
    )
    assert language.events["bleeding"] == EventModel(
        "bleeding", 0.005, {"fever": 0.1}, {"pregnancy": (1.0, 2.0)}, {"infected": (1,)}
    )


def test_a_scenario_that_says_none_of_this_has_none_of_it():
    covid = envs.load_scenario("covid")
    assert (covid.events, covid.intervals, covid.contraindication_features, covid.costs_by_record) == (
        {},
        {},
        (),
        False,
    )
    assert covid.outcomes == (*covid.transient, "death")
    response = envs.ResponseModel(covid)
    # Each table has the size of what it depends on.
    assert {grid.size for row in response.presence for grid in row} == {2}
    assert {cost.size for cost in treatment_costs(covid, {"a1": 0.5})} == {1}
