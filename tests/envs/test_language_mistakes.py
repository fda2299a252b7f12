"""Mistakes in what a scenario says of treatments, events and intervals: one line each, with its place."""

import tomllib
from pathlib import Path

import pytest

import envs

DATA = Path(__file__).parent / "data"
LANGUAGE = (DATA / "language.toml").read_text(encoding="utf-8")
MISTAKES = tomllib.loads((DATA / "language-mistakes.toml").read_text(encoding="utf-8"))["mistake"]


def refusal(path, text):
    """What is said of a text, that it has no scenario."""
    path.write_text(text, encoding="utf-8")
    with pytest.raises(envs.InputFileError) as error:
        envs.load_scenario(path)
    return str(error.value)


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: case["message"].split(": ")[0])
def test_a_mistake_gives_one_line_with_its_place(tmp_path, case):
    assert LANGUAGE.count(case["old"]) == 1
    text = LANGUAGE.replace(case["old"], case["new"])
    line = text[: text.index(case.get("piece", case["new"]))].count("\n") + 1
    path = tmp_path / "s.toml"
    assert refusal(path, text) == f"{path.as_posix()}:{line}: {case['message']}"


def test_several_rules_that_leave_the_range_together_are_all_named(tmp_path):
    text = LANGUAGE.replace("add = { clears.infected = 0.1", "add = { clears.infected = 0.35")
    text = text.replace("clears.infected = { value = 0.6, interval = [0.5, 0.7] }, side", "clears.infected = 1.2, side")
    # For the young, 0.6 + 0.35 is a probability; for the old, 0.6 * 1.2 + 0.35 is none.
    assert refusal(tmp_path / "s.toml", text).endswith(
        "treatments.antiviral.rules[1]: rules[0] and rules[1] make clears.infected 1.07 for these patients: "
        "not infected, fever, age old; it must stay in [0, 1]"
    )


def test_patients_who_may_get_nothing_are_named(tmp_path):
    none = "[treatments.none]\ncontraindicated = [{ asthma = 1, age = 'old' }]"
    heparin = "[treatments.heparin]\ncontraindicated = [{ fever = 0 }]"
    text = LANGUAGE.replace("[treatments.none]", none).replace("[treatments.heparin]", heparin)
    line = text[: text.index("contraindicated = [{ clots")].count("\n") + 1
    path = tmp_path / "s.toml"
    assert refusal(path, text) == (
        f"{path.as_posix()}:{line}: treatments.both.contraindicated: with the contraindications of all treatments, "
        "nothing is left for these patients: not fever, not clots, asthma, not pregnancy, age old"
    )
