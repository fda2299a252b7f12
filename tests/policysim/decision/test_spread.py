"""How much rests on the default spread: what is counted, and that a wider one changes nothing else."""

from dataclasses import replace

import numpy as np
import pytest
from small_studies import write_small_study

import policysim as ps
from policysim.decision import redraws
from policysim.decision.redraws import Redraws, redrawn
from policysim.decision.spread import WIDER, spread
from policysim.study.labels import counted_illustrative


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.setattr(redraws, "REDRAWS", 12)
    return ps.load_study(write_small_study(tmp_path))


def test_wider_versions_are_those_of_a_wider_default(study, monkeypatch):
    problem = ps.build_problem(study)
    policies = [study.policy("optimal", 1.0)]
    found = redrawn(study, problem, policies, times=WIDER)
    counted = spread(study, found, "optimal", "for all: syrup")
    assert counted.counts["times"].tolist() == [1.0, *WIDER]
    for times, better, equal, versions in counted.counts.itertuples(index=False, name=None):
        with monkeypatch.context() as patch:
            # The whole model again, with another default.
            patch.setattr(Redraws, "__init__", with_spread(Redraws.__init__, times))
            table = redrawn(study, problem, policies).options
        wide = table.pivot(index="draw", columns="option", values="value")
        beyond = wide["optimal"] - wide["for all: syrup"]
        assert (better, equal, versions) == ((beyond > 1e-9).sum(), (beyond.abs() <= 1e-9).sum(), 12)
        if times > 1:
            rows = found.wider[found.wider["times"] == times].pivot(index="draw", columns="option", values="value")
            assert rows.to_numpy() == pytest.approx(wide[rows.columns].to_numpy())


def with_spread(made, times):
    def patched(self, scenario_study, _=1.0):
        made(self, scenario_study, times)

    return patched


def test_numbers_are_counted_by_what_moves_them(study):
    found = spread(study, redrawn(study, ps.build_problem(study), []), "for all: pill", "for all: syrup")
    numbers = Redraws(study).drawn
    assert (found.default, found.stated, found.together) == (numbers["default"], numbers["stated"], 0)
    assert found.numbers == counted_illustrative(study)[1] > found.default > 0
    assert len(found.counts) == 1


def test_where_nothing_moves_by_default_there_is_nothing_wider(study):
    keys = [key for key in redraws.numbers_of(study.scenario) if key.startswith("treatments.")]
    numbers = redraws.numbers_of(study.scenario)
    intervals = {key: (numbers[key] * 0.9, min(1.0, numbers[key] * 1.05)) for key in keys if numbers[key]}
    stated = replace(study, scenario=replace(study.scenario, intervals=intervals))
    found = redrawn(stated, ps.build_problem(stated), [], times=WIDER)
    assert found.drawn["default"] == 0
    assert found.wider.empty
    assert spread(stated, found, "for all: pill", "for all: syrup").counts["times"].tolist() == [1.0]


def test_the_same_seed_makes_the_same_versions(study):
    problem = ps.build_problem(study)
    first, second = (redrawn(study, problem, [], times=WIDER) for _ in range(2))
    assert np.array_equal(first.wider["value"], second.wider["value"])
    assert first.options.equals(second.options)
