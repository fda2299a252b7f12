"""The report on a log of every kind: its screen, its page and its files."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from drawings import draw_only
from small_trials import ARMS

import policysim as ps
from policysim.trials import trial_columns
from policysim.trials.trial_report import report

pytestmark = pytest.mark.usefixtures("one_split")
ROOT = Path(__file__).parents[3]
LABELS = ["Best single arm", "Choosing for each", "Drawn privately", "Who is harmed", "What leaks", "How sure"]


def written(folder, names, *, outcome="", model="linear", policies='"exponential", "optimal"', n_rows=1000, parts=1):
    """A study file with so many arms of these names, and its log."""
    rng = np.random.default_rng(2)
    arm = rng.integers(0, len(names), n_rows)
    table = pd.DataFrame(
        {
            "arm": arm,
            "old": rng.integers(0, 2, n_rows),
            "success": (rng.random(n_rows) < 0.4 + 0.3 * arm / (len(names) - 1)).astype(int),
            "pounds": rng.normal(7000 + 10 * arm, 4000, n_rows).clip(0, 50_000).round(),
            "a_rather_long_name_of_an_outcome": rng.integers(0, 2, n_rows),
            "days": rng.integers(1, 900, n_rows),
            "event": rng.integers(0, 2, n_rows),
        }
    )
    for part, rows in enumerate(np.array_split(np.arange(n_rows), parts)):
        table.iloc[rows].to_csv(folder / f"log{part}.csv", index=False)
    outcome = outcome or "outcome = { success = 1.0, a_rather_long_name_of_an_outcome = 0.0 }\nrange = [0, 1]"
    arms = "\n".join(f'{place} = "{name}"' for place, name in enumerate(names))
    file = '"log*.csv"' if parts > 1 else '"log0.csv"'
    (folder / "study.toml").write_text(
        f'title = "{"What does it cost? " * 12}"\n[data]\nfile = {file}\ntreatment = "arm"\npropensity = "equal"\n'
        f'model = "{model}"\n{outcome}\n[data.treatments]\n{arms}\n[data.features]\nold = {{ levels = [0, 1] }}\n'
        '[privacy]\nhidden_from = "all"\nadjacency = "any-record"\nepsilon = 1.0\nepsilons = [0.5, 1.0]\n'
        f'[compare]\npolicies = [{policies}]\nby = ["old"]\n',
        encoding="utf-8",
    )
    return ps.load_study(str(folder / "study.toml"))


LONG = [f"{word} of a treatment whose name is far too long for a column" for word in "abcdefg"]
CENSORED = 'time = "days"\nevent = "event"\nhorizon = 365\noutcome_title = "well after a year"'
POUNDS = "outcome = { pounds = 1.0, success = 0.0 }\nrange = [0, 50000]"
CASES = {
    "many arms": {"names": LONG},
    "arms called as options are": {"names": ["A", "B", "C"]},
    "one arm for each": {"names": ["wait", "pill"], "model": "constant"},
    "no private policy": {"names": ["wait", "pill"], "policies": '"best-fixed"'},
    "fitted and textbook": {"names": ["wait", "pill"], "policies": '"exponential-fitted", "optimal"'},
    "censored": {"names": list(ARMS), "outcome": CENSORED},
    "pounds": {"names": list(ARMS), "outcome": POUNDS},
    "counted": {"names": list(ARMS), "parts": 3},
}


@pytest.mark.parametrize("case", CASES)
def test_a_screen_of_every_kind_of_log(case, tmp_path):
    made = report(written(tmp_path, **CASES[case]), counted=case == "counted")
    lines = str(made).splitlines()
    assert max(map(len, lines)) <= 100
    # Warnings, and arms beyond four with long names, may take lines of their own.
    assert len(lines) <= 45 + 2 * max(0, len(CASES[case]["names"]) - 4)
    assert [line.label for line in made.screen.lines] == LABELS
    assert "nan" not in made.screen.text(full=True)
    options = made.tables["options"]
    assert set(made.tables["arms"]["arm"]) == set(CASES[case]["names"])
    assert options.query("section == 'option'")["option"].unique().tolist() == ["A", "B", "C"]
    assert made.tables["differences"]["verdict"].notna().all()
    text = " ".join(str(made).split())
    assert "The patients of this trial are not protected by any of this." in text.partition("Best single arm")[0]
    if case == "fitted and textbook":
        assert "exponential mechanism of the textbook" in text
    if case == "pounds":
        assert "Mean outcome at ε = 1" in text and "successes" not in text
    if case == "one arm for each":
        assert set(made.tables["differences"].query("option == 'C'")["verdict"]) == {"equal"}
    if case == "censored":
        assert re.search(r"Success: well after a year. \d+ followed for less: weighted.", text)


def test_the_page_has_the_words_of_each_epsilon_and_all_numbers_are_files(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        draw_only(patch, "frontier")
        made = report(written(tmp_path, list(ARMS), policies='"optimal"'), epsilons=[0.5, 1.0, 4.0])
        made.save(tmp_path / "report")
    # What is added for the trace is no policy that was asked for.
    assert "exponential mechanism of the textbook" in str(made)
    assert set(made.tables["comparison"]["policy"]) == {"greedy", "best-fixed", "uniform", "optimal"}
    assert set(made.tables["policies"]["policy"]) == {"optimal"}
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    moving = json.loads(re.search(r'id="moving">(.*?)</script>', page, re.DOTALL)[1])
    assert moving["labels"] == ["0.5", "1", "4"]
    for epsilon, answer in zip((0.5, 1.0, 4.0), moving["answers"], strict=True):
        assert made.screens[epsilon].advice in answer and made.screens[epsilon].lines[2].text in answer
    names = {path.stem for path in (tmp_path / "report").glob("*.csv")}
    expected = {"options", "differences", "leaks", "comparison", "arms", "balance", "calibration", "policies"}
    assert {*expected, "examples"} <= names
    assert expected <= set(made.document()) and "tables" not in made.document()["details"]
    for name, table in made.tables.items():
        read = pd.read_csv(tmp_path / "report" / f"{name}.csv", keep_default_na=False, na_values=[""])
        assert list(read.columns) == list(table.columns) and len(read) == len(table)
    figures = {path.stem for path in (tmp_path / "report" / "figures").glob("*.svg")}
    assert figures == {"frontier", "forest", "calibration", "action-probabilities"}
    assert all(drawing.title and drawing.caption and drawing.alternative for drawing in made.drawings)


def test_the_screen_of_actg175_is_the_snapshot(monkeypatch):
    """One split, and few ε, to save time; `tests/support/snapshots.py` makes the same."""
    monkeypatch.setattr(trial_columns, "REPEATS", 1)
    made = report(ps.load_study(ROOT / "reports" / "actg175" / "study.toml"), epsilons=(0.5, 1.0, 2.0, 5.0, 10.0))
    snapshot = ROOT / "tests" / "snapshots" / "actg175.txt"
    assert made.screen.text() == snapshot.read_text(encoding="utf-8")
