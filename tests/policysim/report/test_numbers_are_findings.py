"""Each number that a report prints is one of its findings; random studies are asked beside their other properties.

See `screen_is_clean` in tests/policysim/decision/test_answer_holds.py.
"""

from dataclasses import replace

import numpy as np
import pytest
from printed_numbers import unknown_numbers
from random_studies import case

import policysim as ps
from policysim.decision.report import report
from policysim.report.screen import Line
from policysim.study.labels import labels_of


@pytest.fixture(scope="module")
def made():
    """The findings, the words and the labels of a few built-in studies, each at one ε and the stated one."""

    def made(name):
        study = ps.load_study(name)
        of = report(study, epsilons=[1.0, 3.0], price_list=name != "covid")
        return of, labels_of(study, ps.build_problem(study))

    return {name: made(name) for name in ("examples/ward/study.toml", "warfarin", "covid")}


@pytest.mark.parametrize("name", ["examples/ward/study.toml", "warfarin", "covid"])
def test_each_number_of_a_built_in_study_is_found(made, name):
    of, labels = made[name]
    assert len(of.screens) == 2
    assert unknown_numbers(of.screen, of.findings, labels) == []


@pytest.mark.parametrize("number", ["30.7", "4,321", "17,654.3", "0.01234", "7.7e−9", "77.7 %"])
def test_a_planted_number_is_not(number):
    findings, screen = case(0).found[case(0).epsilon]
    planted = replace(screen, lines=(*screen.lines, Line("Planted", f"costs {number} more deaths.")))
    assert [each for each, _ in unknown_numbers(planted, findings, case(0).labels)] == [number.removesuffix(" %")]


def test_nearly_every_number_of_three_digits_would_be_seen():
    """A number that is in no table has the digits of one by chance seldom."""
    rng, seen = np.random.default_rng(0), []
    for seed in range(5):
        findings, screen = case(seed).found[case(seed).epsilon]
        numbers = rng.integers(100, 1_000, 40) + rng.integers(1, 9, 40) / 10
        lines = [Line("Planted", f"{number:.1f}") for number in numbers]
        seen.append(len(unknown_numbers(replace(screen, lines=tuple(lines)), findings, case(seed).labels)) / len(lines))
    assert np.mean(seen) > 0.95
