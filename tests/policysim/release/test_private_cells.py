"""Private cells: what is counted, exact privacy over neighbouring logs, one answer to one question, and refusals."""

from fractions import Fraction
from itertools import product
from pathlib import Path

import pandas as pd
import pytest

import policysim as ps
from policysim.cli.main import main
from policysim.logs.load_log import load_rows
from policysim.release import noisy_table, private_cells
from policysim.release.ledger import BudgetError
from policysim.release.noisy_table import TablePlan

STUDY = """
[data]
file = "trial.csv"
treatment = "arm"
propensity = "equal"
outcome = { cured = 1.0 }
missing = "exclude"
[data.treatments]
a = "old drug"
b = "new drug"
[data.features]
age = { cuts = [40], missing = true }
sex = { levels = ["f", "m"] }
"""
COLUMNS = ["age", "sex", "arm", "cured"]
ROWS = [(30, "f", "a", 1), (50, "m", "b", 0), (50, "f", "b", 1), ("", "m", "a", 0)]
KINDS = [*product((30, 50), ("f", "m"), ("a", "b"), (0, 1)), (30, "f", "a", "")]


@pytest.fixture
def trial(tmp_path):
    """Write a log and its study; the study's path."""

    def written(rows=ROWS, text=STUDY, columns=COLUMNS):
        pd.DataFrame(rows, columns=columns).to_csv(tmp_path / "trial.csv", index=False)
        (tmp_path / "trial.toml").write_text(text, encoding="utf-8")
        return tmp_path / "trial.toml"

    return written


@pytest.fixture
def ledger(tmp_path):
    ledger = ps.Ledger(tmp_path / "ledger.sqlite", budget=100)
    ledger._execute("PRAGMA synchronous = OFF")  # of many releases; that a ledger is on the disk is tested elsewhere
    return ledger


@pytest.fixture
def rates(monkeypatch):
    """There is no noise; the rates at which it would have been drawn."""
    rates = []
    monkeypatch.setattr(noisy_table, "discrete_laplace", lambda rate, _: rates.append(rate) or 0)
    return rates


def test_each_patient_is_in_one_cell_and_each_declared_cell_is_there(trial, ledger, rates):
    cells = ps.private_cells(trial([*ROWS, (30, "f", "b", "")]), 1, ledger=ledger)
    assert cells.columns.tolist() == ["age", "sex", "arm", "successes", "failures", "epsilon"]
    there = {("< 40", "f", "old drug"): (1, 0), ("≥ 40", "f", "new drug"): (1, 0)}
    there |= {("≥ 40", "m", "new drug"): (0, 1), ("missing", "m", "old drug"): (0, 1)}
    kinds = [*product(["< 40", "≥ 40", "missing"], ["f", "m"], ["old drug", "new drug"])]
    assert [*cells.itertuples(index=False, name=None)] == [(*kind, *there.get(kind, (0, 0)), 1.0) for kind in kinds]
    assert rates == [Fraction(1, 2)] * 24
    harm = trial(text=STUDY.replace("cured = 1.0", "cured = -2.0"))
    cells = ps.private_cells(harm, 1, ledger=ledger, features=["sex"])
    assert cells[["successes", "failures"]].to_numpy().tolist() == [[0, 1], [0, 1], [1, 0], [1, 0]]


@pytest.mark.usefixtures("rates")
def test_patients_who_leave_before_the_horizon_are_in_no_cell(trial, ledger):
    rows = [("f", "a", 9, 0), ("f", "a", 3, 1), ("f", "a", 3, 0), ("m", "b", 5, 0), ("m", "b", 7, 1), ("m", "b", 5, 1)]
    text = STUDY.replace("outcome = { cured = 1.0 }", 'time = "days"\nevent = "died"\nhorizon = 5')
    text = text.replace("age = { cuts = [40], missing = true }", "")
    cells = ps.private_cells(trial(rows, text, ["sex", "arm", "days", "died"]), 1, ledger=ledger)
    # A patient who is free of it on day 5 is a success, whatever comes later.
    assert cells[["successes", "failures"]].to_numpy().tolist() == [[1, 1], [0, 0], [0, 0], [2, 1]]


def exact_loss(trial, ledger, rates, epsilon):
    """The largest log-ratio of the probabilities of one output from two neighbouring logs, over all outputs.

    Of a cell with counts m and n and noise of P(z) proportional to e^(-rate |z|) it is the largest of
    rate (|z - n| - |z - m|), which is looked for among z; cells are independent, and their ratios multiply.
    """
    worst = Fraction(0)
    for others in ([ROWS[0], ROWS[1]], [ROWS[3], KINDS[5]]):
        tables = [ps.private_cells(trial([*others, kind]), epsilon, ledger=ledger) for kind in KINDS]
        for one, other in product(tables, tables):
            if len(one) != len(other):
                return float("inf")
            cells = zip(*(table[["successes", "failures"]].to_numpy().ravel() for table in (one, other)), strict=True)
            steps = sum(max(abs(z - n) - abs(z - m) for z in range(-3, 9)) for m, n in cells)
            worst = max(worst, rates[-1] * int(steps))
    return worst


@pytest.mark.parametrize("epsilon", [1.0, 0.5])
def test_the_exact_loss_over_all_neighbours_is_epsilon_and_no_less(trial, ledger, rates, epsilon):
    assert exact_loss(trial, ledger, rates, epsilon) == Fraction(epsilon)


def half_the_noise(monkeypatch):
    rate = TablePlan.rate.fget
    monkeypatch.setattr(TablePlan, "rate", property(lambda plan: 2 * rate(plan)))


def patients_and_successes(monkeypatch):
    count = private_cells.count_cells
    monkeypatch.setattr(
        private_cells, "count_cells", lambda *asked: (count(*asked).reshape(-1, 2) @ [[1, 1], [0, 1]]).ravel()
    )


def levels_that_occur(monkeypatch):
    frame = private_cells.cells_frame
    monkeypatch.setattr(private_cells, "cells_frame", lambda *asked: frame(*asked).query("successes + failures > 0"))


@pytest.mark.parametrize("bug", [half_the_noise, patients_and_successes, levels_that_occur])
def test_planted_bugs_lose_more_than_epsilon(trial, ledger, rates, monkeypatch, bug):
    bug(monkeypatch)
    assert exact_loss(trial, ledger, rates, 1.0) > 1


def test_the_same_question_has_one_answer_and_another_one_costs(trial, ledger):
    study = trial()
    first = ps.private_cells(study, "0.5", ledger=ledger)
    # A title changes nothing of what is counted.
    trial(text='title = "Other words"\n' + STUDY)
    assert ps.private_cells(ps.load_study(study), 0.5, ledger=ledger.path).equals(first)
    (entry,) = ledger.releases().to_dict(orient="records")
    assert (entry["command"], entry["data"], entry["cost"]) == ("private cells", "trial.csv", "0.5")
    assert (entry["hides"], entry["adjacency"]) == (["age", "sex", "arm", "cured"], "replace-one")
    ps.private_cells(study, 1, ledger=ledger)
    ps.private_cells(study, 1, ledger=ledger, features=["sex", "sex"])
    ps.private_cells(trial([*ROWS[:3], ROWS[0]]), 1, ledger=ledger)
    assert str(ledger.spent()) == "3.5"
    with pytest.raises(BudgetError, match=r"costs ε = 97; 3.5 of the budget 100 is spent"):
        ps.private_cells(study, 97, ledger=ledger)
    assert len(ledger.releases()) == 4


WRONG = [
    (('"equal"', '"chance"'), {}, "a column weights each patient"),
    (('a = "old drug"\nb = "new drug"', ""), {}, r"\[data.treatments\] must declare the arms"),
    (("cured = 1.0", "cured = 1.0, died = -1.0"), {}, "of cured, died: a sum is no success or failure"),
    (("true }", "true }  # CHECK"), {}, "read the guesses marked # CHECK"),
    (('"equal"', '"estimate"'), {"features": ["sex"]}, "all features must make the classes"),
    (("sex = {", "epsilon = {"), {}, "features: epsilon: name it otherwise"),
    (("cuts = [40]", "cuts = [40]"), {"features": ["size"]}, "unknown feature 'size'"),
    (("cuts = [40]", "cuts = [40]"), {"epsilon": "1e-320"}, "epsilon must be >= 1e-06, .* got epsilon='1e-320'"),
    (
        ("cuts = [40]", "cuts = [40]"),
        {"epsilon": 9.9e-7},
        "epsilon must be >= 1e-06, below which .* got epsilon=9.9e-07",
    ),
    (("cuts = [40]", "cuts = [40]"), {"epsilon": -1}, "epsilon must be a number >= 0, got -1"),
    (("cured = 1.0 }", "cured = 1.0 }\nrange = [0, 9]"), {}, "data.outcome must be 0 or 1 in each row"),
    (("cured = 1.0", "cured = 1.0"), {"id": "patient_id"}, "patient_id repeats, and epsilon hides one row"),
    (("[data]", '[data]\nid = "patient_id"'), {"id": "patient_id"}, "patient_id: '2' is there already"),
    (
        ("[data]", '[data]\nid = "patient_id"\ncluster = "patient_id"'),
        {"id": "patient_id"},
        "cluster: a person may have several rows, and epsilon hides one row",
    ),
]


@pytest.mark.parametrize(("changed", "asked", "words"), WRONG)
def test_what_would_not_hide_a_patient_or_mislead_is_refused_in_a_line(trial, ledger, changed, asked, words):
    # An outcome of 3 is read only within a wider range.
    last = 3 if "range" in changed[1] else 1
    rows = [(*row, number) for row, number in zip([*ROWS[:3], (30, "f", "a", last)], (1, 2, 2, 3), strict=True)]
    named = {name: value for name, value in asked.items() if name != "id"}
    study = trial(rows, STUDY.replace(*changed), [*COLUMNS, asked.get("id", "weight")])
    with pytest.raises(ValueError, match=words) as caught:
        ps.private_cells(study, **named, ledger=ledger)
    assert len(str(caught.value).splitlines()) == 1
    assert ledger.releases().empty


@pytest.mark.parametrize(("log", "given"), [(pd.DataFrame({"action": [1]}), "DataFrame"), (Path("covid"), "covid")])
def test_only_a_study_of_a_log_declares_levels(ledger, log, given):
    must = r"log must be a study with a table \[data\], which declares levels and arms"
    with pytest.raises(ValueError, match=rf"^{must}, got {given}; policysim init LOG --outcome COLUMN writes one\.$"):
        ps.private_cells(log, ledger=ledger)


def test_one_feature_is_one_name(trial, ledger):
    assert ps.private_cells(trial(), ledger=ledger, features="sex").columns[0] == "sex"


@pytest.mark.parametrize(
    ("row", "line"),
    [
        ((30, "f", "z", 1), "arm: must be one of the treatments a, b, got 'z'"),
        ((30, "f", "a", 7), "cured: must be within [0, 1], or declare the range, got '7'"),
        ((30, "x", "a", 1), "sex: must be one of f, m, got 'x'"),
    ],
)
def test_a_refusal_shows_no_value_of_a_patient_unless_asked(trial, ledger, capsys, row, line):
    asked = ["privatize", str(trial([*ROWS, row])), "--as", "cells", "--epsilon", "1", "--out", "cells.csv"]
    for more, shown in (((), line[: line.index(", got")]), (("--show-values",), line)):
        assert main([*asked, "--ledger", str(ledger.path), *more]) == 3
        (said,) = capsys.readouterr().err.splitlines()
        assert f"trial.csv:6: row 5: {shown}" in said and (", got" in said) == bool(more)
    assert main(["privatize", "trial.csv", "--column", "sex", "--show-values"]) == 2
    assert ledger.releases().empty


def test_the_command_writes_cells_and_a_study_is_planned_on_them_without_the_log(tmp_path, trial, ledger, capsys):
    cells, study = tmp_path / "cells.csv", trial(KINDS[:-1] * 50)
    (tmp_path / "trial.csv").chmod(0o600)
    asked = ["privatize", str(study), "--as", "cells", "--column", "sex", "--epsilon", "1", "--out"]
    for out, more, code in (
        (cells, (), 2),
        (cells, ("--uncounted",), 2),
        (cells, ("--ledger", str(ledger.path)), 0),
        (cells, ("--ledger", str(ledger.path)), 4),
        (tmp_path / "again.csv", ("--ledger", str(ledger.path)), 0),
    ):
        assert main([*asked, str(out), *more]) == code
        told = capsys.readouterr()
        assert (f"policysim: {ledger.path}: entry 1; ε = 1 is spent; budget 100 a person\n" == told.err) == (code == 0)
        assert ("ε = 1 in all, between files in which one row is" in " ".join(told.out.split())) == (code == 0)
    assert cells.read_bytes() == (tmp_path / "again.csv").read_bytes()
    assert cells.stat().st_mode & 0o777 == 0o600
    assert str(ledger.spent()) == "1.0"
    (tmp_path / "trial.csv").unlink()
    plan = tmp_path / "plan.toml"
    plan.write_text('[cohort]\ncells = "cells.csv"\nfeatures = ["sex"]\ntreatment = "arm"\n', encoding="utf-8")
    capsys.readouterr()
    assert main(["compare", str(plan), "--epsilon", "1", "--out", str(tmp_path / "out")]) == 0
    screen = " ".join(capsys.readouterr().out.split())
    assert "Past patients Noise in their counts hides each of them up to ε = 1. It costs" in screen
    assert "A model of noisy counts of patients, each of whom ε = 1 hides; not medical advice" in screen


def test_cuts_that_differ_in_a_late_digit_are_another_question(trial, ledger):
    rows = [(40, "f", "a", 1), *ROWS]
    study = trial(rows)
    ps.private_cells(study, 1, ledger=ledger)
    trial(rows, STUDY.replace("[40]", "[40.0000001]"))
    ps.private_cells(study, 1, ledger=ledger)
    assert len(ledger.releases()) == 2


def test_a_log_that_changes_while_it_is_read_is_not_counted(trial, ledger, monkeypatch):
    study = trial()

    def read_late(*given, **options):
        rows = load_rows(*given, **options)
        trial([*ROWS, ROWS[0]])
        return rows

    monkeypatch.setattr(private_cells, "load_rows", read_late)
    with pytest.raises(ValueError, match=r"trial\.toml: its log was changed while it was read"):
        ps.private_cells(study, 1, ledger=ledger)
    assert ledger.releases().empty
