"""What a scenario states without effect is said, and nothing else."""

from dataclasses import replace

import pytest

import policysim as ps
from policysim.decision.scenario_outcomes import without_effect
from policysim.study.labels import counted_illustrative
from policysim.study.study_reader import load_study

SCENARIO = """
title = "Ward"
source = "a trial"
[features]
ill = {}
age = { levels = ["young", "old", "older"], shares = [0.5, 0.5, 0] }
colour = { levels = ["red", "blue"], shares = [0.5, 0.5] }
[[rules]]
source = "a register"
set = { ill = 0.4, death = 0.01 }
[[rules]]
source = "a register"
when = { age = "old" }
multiply = { death = 2 }
[natural_clearing]
ill = 0.1
[treatments.none]
[treatments.drug]
cost = 0.05
clears = { ill = 0.5 }
hazard_ratio = { fall = 1.5 }
[events.fall]
baseline = 0.01
[death]
hazard = { ill = 1.0 }
[weights]
ill = 1
fall = 2
death = 10
"""


def sentences(tmp_path, *changes):
    text = SCENARIO
    for before, after in changes:
        assert text.count(before) == 1
        text = text.replace(before, after)
    (tmp_path / "ward.toml").write_text(text)
    (tmp_path / "study.toml").write_text('scenario = "ward.toml"\n')
    study = load_study(tmp_path / "study.toml")
    return study, without_effect(study, ps.build_problem(study))


COLOUR = "Under this model no choice of a treatment depends on colour"
FACTORS = "[death.relative_risk]\nage = [1, 3, 3]\n[weights]"
PLANTED = {
    "a weight of 0": (("fall = 2\n", "fall = 0\n"), "Fall weighs nothing in the utility"),
    "an event that nothing changes": (
        ("hazard_ratio = { fall = 1.5 }\n", ""),
        "Fall is as likely under every treatment",
    ),
    "a relative risk that cancels": (("[weights]", FACTORS), "The relative risk of death by age cancels"),
    "a rule for nobody": (
        (
            "[natural_clearing]",
            '[[rules]]\nsource = "a register"\nwhen = { age = "older" }\nmultiply = { ill = 2 }\n[natural_clearing]',
        ),
        "Rule 3 of the patients (“a register”) matches no patient.",
    ),
    "a rule on nothing": (
        (
            "[events.fall]",
            '[[treatments.drug.rules]]\nsource = "x"\nmultiply = { side_effects.ill = 2 }\n[events.fall]',
        ),
        "Rule 1 of drug multiplies side_effects.ill, which is 0, by 2.",
    ),
}


def test_only_a_feature_that_is_not_used_is_said_of_the_plain_scenario(tmp_path):
    assert [said[: len(COLOUR)] for said in sentences(tmp_path)[1]] == [COLOUR]


@pytest.mark.parametrize("kind", PLANTED)
def test_each_thing_without_effect_is_said_once(tmp_path, kind):
    change, expected = PLANTED[kind]
    _, found = sentences(tmp_path, change)
    assert sum(said.startswith(expected) for said in found) == 1
    assert len(found) == 2


def test_a_relative_risk_by_another_feature_than_the_rules_does_not_cancel(tmp_path):
    change = ("[weights]", "[death.relative_risk]\ncolour = [1, 3]\n[weights]")
    assert sentences(tmp_path, change)[1] == ()


def test_a_cancelled_relative_risk_changes_no_utility(tmp_path):
    # The sentence is a theorem about the severity; the table says the same.
    plain, _ = sentences(tmp_path)
    risky, _ = sentences(tmp_path, ("[weights]", FACTORS))
    assert ps.build_problem(risky).utilities == pytest.approx(ps.build_problem(plain).utilities, rel=1e-12)


def test_illustrative_numbers_are_counted():
    study = load_study("covid")
    covid = study.scenario
    count = sum(len(t.clears) + len(t.side_effects) + bool(t.cost) for t in covid.treatments.values())
    count += len(covid.natural_clearing) + len(covid.onset)
    death = covid.hazards["death"]
    count += 1 + len(death.hazard) + sum(map(len, death.relative_risk.values()))
    rules = sum(len(rule.targets) for rule in covid.rules)
    assert counted_illustrative(study) == (count, count + rules)


def test_with_a_source_for_every_number_none_is_illustrative(tmp_path):
    study, _ = sentences(tmp_path)
    none, total = counted_illustrative(study)
    assert none == 0
    one, _ = sentences(tmp_path, ("[events.fall]\n", '[events.fall]\nsource = "illustrative"\n'))
    assert counted_illustrative(one) == (1, total)
    every = replace(
        one.scenario,
        source="illustrative",
        rules=tuple(replace(rule, source="illustrative") for rule in one.scenario.rules),
    )
    assert counted_illustrative(replace(one, scenario=every)) == (total, total)
