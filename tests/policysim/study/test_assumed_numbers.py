"""How many numbers of a scenario are assumed; and relative risks that rules by the same feature cancel."""

from dataclasses import replace

import pytest

import policysim as ps
from policysim.study.labels import counted_illustrative, numbers_by_part
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


def study_with(tmp_path, *changes):
    text = SCENARIO
    for before, after in changes:
        assert text.count(before) == 1
        text = text.replace(before, after)
    (tmp_path / "ward.toml").write_text(text)
    (tmp_path / "study.toml").write_text('scenario = "ward.toml"\n')
    return load_study(tmp_path / "study.toml")


def test_a_cancelled_relative_risk_changes_no_utility(tmp_path):
    plain = study_with(tmp_path)
    risky = study_with(tmp_path, ("[weights]", "[death.relative_risk]\nage = [1, 3, 3]\n[weights]"))
    assert ps.build_problem(risky).utilities == pytest.approx(ps.build_problem(plain).utilities, rel=1e-12)


def test_illustrative_numbers_are_counted_by_part():
    study = load_study("covid")
    covid = study.scenario
    parts = numbers_by_part(covid)
    effects = sum(len(t.clears) + len(t.side_effects) + bool(t.cost) for t in covid.treatments.values())
    assert sum(count for part, (count, _) in parts.items() if part.startswith("treatment ")) == effects
    assert all(source == "illustrative" for part, (_, source) in parts.items() if not part.startswith("rule "))
    count = effects + len(covid.natural_clearing) + len(covid.onset) + parts["death"][0]
    assert counted_illustrative(study) == (count, sum(count for count, _ in parts.values()))


def test_with_a_source_for_every_number_none_is_illustrative(tmp_path):
    study = study_with(tmp_path)
    none, total = counted_illustrative(study)
    assert none == 0
    one = study_with(tmp_path, ("[events.fall]\n", '[events.fall]\nsource = "illustrative"\n'))
    assert counted_illustrative(one) == (1, total)
    every = replace(
        one.scenario,
        source="illustrative",
        rules=tuple(replace(rule, source="illustrative") for rule in one.scenario.rules),
    )
    assert counted_illustrative(replace(one, scenario=every)) == (total, total)
