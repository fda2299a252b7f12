"""Redraws beside a scenario: every number has a key, a draw has the numbers of its row, and mistakes are refused."""

from pathlib import Path

import numpy as np
import pytest

import envs
from envs.scenario import numbers_of, with_numbers

LANGUAGE = (Path(__file__).parent / "data" / "language.toml").read_text(encoding="utf-8")
KEYS = ["treatments.antiviral.hazard_ratio.death", "events.stroke.relative_risk.age.1", "rules.1.set.death"]
GOOD = [["draw", *KEYS], *([str(draw), "0.9", f"{1 + draw / 10:g}", "0.04"] for draw in range(1, 21))]


@pytest.fixture(scope="module")
def language(tmp_path_factory):
    path = tmp_path_factory.mktemp("language") / "language.toml"
    path.write_text(LANGUAGE, encoding="utf-8")
    return envs.load_scenario(path)


def with_redraws(folder, rows):
    """The path of a scenario with these redraws beside it."""
    (folder / "redraws.csv").write_text("\n".join(map(",".join, rows)) + "\n", encoding="utf-8")
    path = folder / "s.toml"
    path.write_text(f'redraws = "redraws.csv"\n{LANGUAGE}', encoding="utf-8")
    return path


def test_each_number_can_be_set_by_its_key_and_nothing_else_moves(language):
    numbers = numbers_of(language)
    assert set(language.intervals) < set(numbers)
    for place, key in enumerate(numbers):
        other = {**numbers, key: 0.001 * (place + 1)}
        assert numbers_of(with_numbers(language, {key: other[key]})) == other


def test_all_numbers_can_be_set_at_once(language):
    others = {key: 0.001 * (place + 1) for place, key in enumerate(numbers_of(language))}
    made = with_numbers(language, others)
    assert numbers_of(made) == others
    # Rules keep what they change besides, and everything else stays.
    assert with_numbers(made, numbers_of(language)) == language
    assert with_numbers(language, {}) == language


def test_names_may_have_dots_of_their_own(tmp_path):
    path = tmp_path / "dots.toml"
    own = "".join(f'[treatments."{name}"]\ncost = 0.5\n' for name in ("anti", "anti.viral"))
    path.write_text(LANGUAGE.replace("[treatments.none]", f"{own}[treatments.none]"), encoding="utf-8")
    made = with_numbers(envs.load_scenario(path), {"treatments.anti.viral.cost": 0.25, "treatments.anti.cost": 0.75})
    costs = {name: treatment.cost for name, treatment in made.treatments.items()}
    assert (costs["anti.viral"], costs["anti"], costs["antiviral"]) == (0.25, 0.75, 0.03)


def test_the_numbers_of_the_file_are_those_of_the_draws(tmp_path):
    found = envs.load_scenario(with_redraws(tmp_path, GOOD)).redraws
    assert list(found.numbers) == KEYS
    assert np.array(list(found.numbers.values())) == pytest.approx(np.array(GOOD[1:], dtype=float)[:, 1:].T)
    assert found.file == "redraws.csv"


def changed(line, column, value):
    """The good rows with another value in one place."""
    rows = [list(row) for row in GOOD]
    rows[line - 1][column] = value
    return rows


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            changed(1, 1, "treatments.antiviral.hazard_ratio.dearth"),
            "unknown number 'treatments.antiviral.hazard_ratio",
        ),
        (changed(1, 2, KEYS[0]), f"has a column {KEYS[0]} twice"),
        (changed(1, 0, "row"), "must have a column draw, and a column for each number that varies"),
        (GOOD[:20], "must have at least 20 rows, one for each draw; got 19"),
        (changed(7, 1, "-0.5"), f"line 7: {KEYS[0]} must be a number in [1e-06, 1e+06], got '-0.5'"),
        (changed(7, 3, "1.5"), f"line 7: {KEYS[2]} must be a number in [0, 1], got '1.5'"),
        (changed(7, 3, "1"), "the rules make death without treatment certain: it must be < 1"),
        (changed(7, 2, "many"), f"line 7: {KEYS[1]} must be a number in [1e-06, 1e+06], got 'many'"),
        ([*GOOD[:6], GOOD[6][:2], *GOOD[7:]], "line 7 has 2 values, and not 4"),
        # What a rule of a treatment does would have to be possible for each patient.
        (changed(1, 1, "treatments.antiviral.rules.0.multiply.cost"), "unknown number"),
    ],
)
def test_a_mistake_is_one_line_with_its_place(tmp_path, rows, said):
    path = with_redraws(tmp_path, rows)
    with pytest.raises(envs.InputFileError) as error:
        envs.load_scenario(path)
    assert str(error.value).startswith(f"{path.as_posix()}:1: redraws: {(tmp_path / 'redraws.csv').as_posix()}: {said}")
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_is_named(tmp_path):
    path = with_redraws(tmp_path, GOOD)
    (tmp_path / "redraws.csv").unlink()
    with pytest.raises(envs.InputFileError, match=r"redraws\.csv: cannot be read"):
        envs.load_scenario(path)
