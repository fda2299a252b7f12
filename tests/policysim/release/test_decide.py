"""Treatments for patients: drawn once and counted; refused, or repeated, for public reasons only."""

import csv
import json
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import killed_decisions
import numpy as np
import pandas as pd
import pytest
from chi_square import draws_fit
from hypothesis import given, settings
from hypothesis import strategies as st
from small_studies import SCENARIO, STUDY, write_small_study
from small_trials import OF_EXAMPLE

import policysim as ps
from policies import AnyRecord, DecisionProblem, OneFeature, Sensitive, make_policy
from policies.adjacency import Listed
from policies.policy import ClaimError, Policy
from policysim.cli.main import main
from policysim.files.bad_rows import DataError
from policysim.release import decide as module
from policysim.release.ledger import ADD_OR_REMOVE, BudgetError, Ledger, Release

# Sex is public, and only it says who may get what; of age three levels are hidden, one of them for missing values.
AGES, TREATMENTS = ("young", "old", "NA"), ("wait", "drug", "surgery")
INDEX = pd.MultiIndex.from_product([["f", "m"], AGES], names=["sex", "age"])
UTILITIES = np.array([[0, 1, 2], [1, 2, 0], [0, 0, 1], [2, 0, 1], [0, 3, 1], [1, 0, 0]], dtype=float)
PRIOR = np.array([0.3, 0.1, 0.1, 0.2, 0.2, 0.1])
RECORDS = [(sex, age) for sex in ("f", "m") for age in AGES]


def masked(*forbidden):
    """Which treatments women may not get, as a mask."""
    allowed = np.ones((6, 3), dtype=bool)
    for name in forbidden:
        allowed[:3, TREATMENTS.index(name)] = False
    return allowed


def problem_of(adjacency=None, admissible=None):
    adjacency = adjacency or Sensitive((2, 3), (1,))
    frame = pd.DataFrame(UTILITIES, INDEX, TREATMENTS)
    return DecisionProblem(frame, PRIOR, adjacency, admissible=admissible)


def people(*rows):
    """Rows of patient, event and record."""
    table = [(patient, event, *RECORDS[record]) for patient, event, record in rows]
    return pd.DataFrame(table, columns=["patient", "day", "sex", "age"])


@pytest.fixture
def ledger(tmp_path):
    return Ledger(tmp_path / "ledger.sqlite", budget=2)


def ask(ledger, patients, problem=None, **options):
    asked = {"epsilon": 1, "id": "patient", "event": "day", "ledger": ledger}
    return ps.decide(problem or problem_of(), patients, **{**asked, **options})


def statuses(ledger, *rows, **options):
    return ask(ledger, people(*rows), **options)["status"].tolist()


# What is drawn.


@pytest.mark.parametrize(
    "policy",
    ["optimal", ps.privatize_policy(lambda codes: UTILITIES[3 * codes[:, 0] + codes[:, 1]], epsilon=2)],
    ids=["name", "model"],
)
def test_draws_follow_the_table_of_the_policy(ledger, policy):
    problem = problem_of()
    rows = np.repeat(np.arange(6), 700)
    drawn = ask(ledger, people(*((number, 1, record) for number, record in enumerate(rows))), policy=policy)
    kind = replace(make_policy(policy) if isinstance(policy, str) else policy, epsilon=1.0)
    actions = np.array([TREATMENTS.index(name) for name in drawn["treatment"]])
    assert draws_fit(kind.fit(problem).probabilities, rows, actions)
    assert (drawn["status"] == "drawn").all()


def test_tuesdays_list_with_18_of_mondays_20_patients_has_18_as_before_and_none_differs(ledger):
    monday = people(*((number, "stay", number % 6) for number in range(20)))
    tuesday = people(*((number, "stay", number % 6) for number in (*range(21, 1, -1),)))
    before = ask(ledger, monday).set_index("patient")["treatment"]
    after = ask(ledger, tuesday).set_index("patient")
    assert Counter(after["status"]) == {"as before": 18, "drawn": 2}
    both = sorted(set(before.index) & set(after.index))
    assert len(both) == 18
    assert (after.loc[both, "treatment"] == before[both]).all()
    assert {ledger.spent(str(number)) for number in range(22)} == {Decimal(1)}


def test_on_the_third_day_a_patient_with_budget_2_gets_the_treatment_of_the_second_and_nothing_is_charged(ledger):
    days = [ask(ledger, people(("P", day, 4), ("Q", 1, 0))).iloc[0] for day in range(12)]
    assert [day["status"] for day in days[:4]] == ["drawn", "drawn", "refused: budget", "refused: budget"]
    assert {day["treatment"] for day in days[2:]} == {days[1]["treatment"]}
    assert ledger.spent("P") == 2
    # Asked again, each day is what it was.
    again = ask(ledger, people(*(("P", day, 4) for day in range(12))))
    assert again["treatment"].tolist() == [day["treatment"] for day in days]
    assert again["status"].tolist() == ["as before"] * 2 + ["refused: budget"] * 10


@pytest.mark.parametrize(
    ("problem", "best"),
    [
        (problem_of(), ["surgery", "drug"]),
        (problem_of(admissible=masked("surgery")), ["drug", "drug"]),
        (problem_of(AnyRecord()), ["drug", "drug"]),
    ],
)
def test_who_was_never_drawn_for_gets_beyond_the_budget_what_is_best_for_all_that_agree_in_public(
    ledger, problem, best
):
    with ledger.transaction():
        ledger.charge_patient(ledger.digest("patient", "P"), Decimal("1.5"))
    drawn = ask(ledger, people(*(("P", day, day) for day in range(6))), problem)
    assert set(drawn["status"]) == {"refused: budget"}
    assert drawn["treatment"].tolist() == [best[0]] * 3 + [best[1]] * 3
    assert ledger.spent("P") == Decimal("1.5")


def test_an_epsilon_beyond_the_budget_of_a_person_refuses_nobody_for_good(ledger):
    with pytest.raises(
        BudgetError, match=r"one decision costs ε = 3, which is more than the budget of a person, 2: not"
    ):
        statuses(ledger, ("P", 1, 0), epsilon=3)
    assert (ledger.head, ledger.spent("P")) == (0, 0)
    assert statuses(ledger, ("P", 1, 0), epsilon=2) == ["drawn"]
    # What was drawn is given again, whatever is typed.
    assert statuses(ledger, ("P", 1, 0), epsilon=3) == ["as before"]


def test_what_is_contraindicated_now_is_not_given_again_and_a_new_event_is_drawn(ledger):
    patients = people(*((number, 1, number % 3) for number in range(60)))
    before = ask(ledger, patients)["treatment"]
    after = ask(ledger, patients, problem_of(admissible=masked("surgery")))
    lost = before == "surgery"
    assert lost.any()
    assert set(after.loc[lost, "status"]) == {"refused: contraindicated"}
    assert set(after.loc[lost, "treatment"]) == {""}
    assert (after.loc[~lost, "treatment"] == before[~lost]).all()
    new = ask(ledger, patients.assign(day=2), problem_of(admissible=masked("surgery")))
    assert set(new["status"]) == {"drawn"}
    assert "surgery" not in set(new["treatment"])


def test_beyond_the_budget_a_last_treatment_that_is_contraindicated_is_not_repeated(ledger):
    patients = people(*((number, 1, number % 3) for number in range(60)))
    before = ask(ledger, patients, epsilon=2)["treatment"]
    after = ask(ledger, patients.assign(day=2), problem_of(admissible=masked("surgery")))
    assert set(after["status"]) == {"refused: budget"}
    means = PRIOR[:3] @ UTILITIES[:3]
    expected = before.where(before != "surgery", TREATMENTS[means[:2].argmax()])
    assert after["treatment"].tolist() == expected.tolist()
    # What stands in for a draw is none: the one before it is repeated as soon as it is allowed.
    assert ask(ledger, patients.assign(day=3))["treatment"].tolist() == before.tolist()


visits = st.tuples(st.sampled_from("PQR"), st.integers(1, 3), st.integers(0, 5))
lists = st.lists(visits, min_size=1, max_size=6, unique_by=lambda visit: visit[:2])


@settings(max_examples=15)
@given(st.lists(st.tuples(lists, st.sampled_from(["0", "0.1", "0.7", "1"])), min_size=1, max_size=6))
def test_any_days_are_as_dictionaries_would_have_them(tmp_path_factory, days):
    ledger = Ledger(tmp_path_factory.mktemp("ledger") / "l.sqlite", "1.2")
    spent, decisions, last = Counter(), {}, {}
    for rows, epsilon in days:
        drawn = ask(ledger, people(*rows), epsilon=epsilon)
        for (patient, event, record), treatment, status in zip(rows, drawn["treatment"], drawn["status"], strict=True):
            if (patient, event) in decisions:
                before, record_before = decisions[patient, event]
                same = "as before" if record_before == record else "as before: record changed"
                assert (treatment, status) == (before, "refused: budget" if record_before is None else same)
            elif spent[patient] + Decimal(epsilon) > Decimal("1.2"):
                assert (last.get(patient, treatment), status) == (treatment, "refused: budget")
                decisions[patient, event] = treatment, None
            else:
                assert status == "drawn"
                spent[patient] += Decimal(epsilon)
                decisions[patient, event], last[patient] = (treatment, record), treatment
    assert all(ledger.spent(patient) == spent[patient] for patient in "PQR")


# What is charged.


def test_an_entry_says_what_is_hidden_and_public_and_what_it_costs(ledger, tmp_path):
    ask(ledger, people(("P", 1, 0)))
    features = ledger.releases().iloc[0]
    assert (features["hides"], features["publishes"], features["cost"]) == (["age"], ["sex"], "1")
    other = Ledger(tmp_path / "other.sqlite")
    ask(other, people(("P", 1, 0)), problem_of(OneFeature((2, 3))), epsilon="0.1")
    one = other.releases().iloc[0]
    assert (one["adjacency"], one["hides"], one["cost"]) == ("one-feature", ["sex", "age"], "0.2")
    assert other.spent("P") == Decimal("0.2")
    assert "P" not in json.dumps(features.to_dict(), default=str).replace("Public", "")


def test_of_a_list_of_records_the_hidden_features_are_those_in_which_neighbours_differ(ledger):
    codes = [(sex, age) for sex in range(2) for age in range(3)]
    ask(ledger, people(("P", 1, 0)), problem_of(Listed.sensitive(codes, [1])))
    assert (ledger.releases()["hides"][0], ledger.releases()["publishes"][0]) == (["age"], ["sex"])
    with pytest.raises(ValueError, match="decide needs the adjacency any-record, one-feature or sensitive"):
        ask(ledger, people(("P", 2, 0)), problem_of(Listed.one_feature(codes)))


def test_what_one_release_publishes_no_later_one_hides(ledger, tmp_path):
    ask(ledger, people(("P", 1, 0)))
    with pytest.raises(BudgetError, match="sex"):
        ask(ledger, people(("Q", 1, 0)), problem_of(AnyRecord()))
    assert (ledger.spent("Q"), ledger.head) == (0, 1)
    free = Ledger(tmp_path / "free.sqlite")
    ask(free, people(("P", 1, 0)))
    ask(free, people(("Q", 1, 0)), problem_of(AnyRecord()))
    assert free.spent() == Decimal("Infinity")
    counted = Ledger(tmp_path / "counted.sqlite", budget=2)
    with counted.transaction():
        counted.charge(Release("table", "counts", Decimal("0.1"), ("ward",), adjacency=ADD_OR_REMOVE))
    with pytest.raises(BudgetError, match="which rows there are"):
        ask(counted, people(("P", 1, 0)))


def test_a_rerun_by_other_public_features_is_an_entry_of_its_own(tmp_path):
    """Which patients are now contraindicated shows what decides that, though nothing is drawn."""
    everybody = people(*((number, 1, number % 6) for number in range(12)))
    by_age = np.ones((6, 3), dtype=bool)
    by_age[[1, 4], 1] = False  # the old get no drug: age is public here
    other = problem_of(Sensitive((2, 3), (0,)), admissible=by_age)
    with_budget, without = Ledger(tmp_path / "a.sqlite", budget=5), Ledger(tmp_path / "b.sqlite")
    for ledger in (with_budget, without):
        ask(ledger, everybody)
    with pytest.raises(BudgetError, match="one release publishes age, sex, and another one hides it"):
        ask(with_budget, everybody, other)
    assert (with_budget.head, with_budget.spent()) == (1, 0)
    assert set(ask(without, everybody, other)["status"]) <= {"as before", "refused: contraindicated"}
    assert (without.head, without.spent()) == (2, Decimal("Infinity"))
    # The same study again adds nothing.
    ask(with_budget, everybody)
    assert with_budget.head == 1


def test_a_treatment_that_was_seen_is_not_published_beside_the_best(ledger):
    ask(ledger, people(("P", 1, 0)))
    with pytest.raises(DataError, match=r"^row 0: patient, day: was decided where others see the treatment, and now"):
        ask(ledger, people(("P", 1, 0)), seen="publication")
    assert ask(ledger, people(("P", 2, 0)), seen="publication")["status"].tolist() == ["drawn"]
    assert ledger.spent("P") == 2


def test_a_policy_that_reveals_more_than_epsilon_draws_nothing(ledger):
    class TooSharp(Policy):
        name = "too-sharp"

        def _log_probabilities(self, problem):
            return np.log(make_policy("randomized-response", epsilon=self.epsilon * 1.0001).probabilities(problem))

    with pytest.raises(ClaimError):
        ask(ledger, people(("P", 1, 0)), policy=TooSharp())
    assert (ledger.head, ledger.spent("P")) == (0, 0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"epsilon": "inf"}, "epsilon must be finite"),
        ({"event": "patient"}, "event must be a column of its own"),
        ({"missing": "sex=old"}, "missing must be LEVEL or FEATURE=LEVEL, of a level that there is, got 'sex=old'"),
        ({"seen": "nobody"}, "seen must be one of treatment, publication"),
        ({"seen": "publication", "policy": "exponential"}, "by randomized-response, got policy=exponential"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(ledger, options, said):
    with pytest.raises(ValueError, match=said):
        ask(ledger, people(("P", 1, 0)), **options)
    assert ledger.head == 0


def test_the_log_of_a_study_is_not_treated_by_it(tmp_path, ledger):
    log = shutil.copy(Path("examples/trial.csv").resolve(), tmp_path / "trial.csv")
    assert main(["init", str(log), "--out", str(tmp_path / "trial.toml"), *OF_EXAMPLE]) == 0
    for patients in (log, shutil.copy(log, tmp_path / "copy.csv")):
        with pytest.raises(DataError, match="numbers were fitted to these patients"):
            ask(ledger, patients, tmp_path / "trial.toml")


def test_guesses_that_nobody_has_read_are_named_before_treatments_are_drawn_by_them(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    log = shutil.copy(Path(__file__).parents[3] / "examples" / "trial.csv", tmp_path / "trial.csv")
    assert main(["init", "trial.csv", "--out", "trial.toml", *OF_EXAMPLE]) == 0
    pd.read_csv(log).head(20).assign(who=range(20), day=1).to_csv("others.csv", index=False)
    Ledger("ledger.sqlite")
    asked = ("--epsilon", "1", "--id", "who", "--event", "day", "--ledger", "ledger.sqlite", "--dry-run")
    for marked in (True, False):
        capsys.readouterr()
        assert main(["decide", "others.csv", "--study", "trial.toml", *asked]) == 0
        assert ("marked # CHECK" in capsys.readouterr().err) == marked
        study = Path("trial.toml")
        study.write_text(study.read_text().replace("# CHECK", "#"))


def test_a_table_of_the_log_is_not_treated_by_the_study_in_any_order(tmp_path, ledger):
    log = shutil.copy(Path("examples/trial.csv").resolve(), tmp_path / "trial.csv")
    assert main(["init", str(log), "--out", str(tmp_path / "trial.toml"), *OF_EXAMPLE]) == 0
    frame = pd.read_csv(log)
    frame = frame.assign(day=1)
    for patients in (frame, frame.sample(frac=1, random_state=0)):
        with pytest.raises(DataError, match=r"^patients: is the log of the study .* fitted to these patients"):
            ask(ledger, patients, tmp_path / "trial.toml")
    assert ledger.head == 0


def test_patients_that_are_no_table_are_refused_in_a_line(ledger):
    with pytest.raises(TypeError, match=r"^patients must be a pandas DataFrame or the path of a file, got list\.$"):
        ask(ledger, [1, 2])


# Patients that do not fit.


def test_a_missing_or_unknown_hidden_value_is_drawn_like_the_level_that_stands_for_it(ledger):
    rows = people(*((number, 1, number % 3) for number in range(3000)))
    holes = rows.assign(age=np.where(rows.index % 2, None, "unheard of"))
    drawn = ask(ledger, holes)
    assert set(drawn["status"]) == {"drawn"}
    table = make_policy("exponential-fitted", epsilon=1).fit(problem_of()).probabilities
    actions = np.array([TREATMENTS.index(name) for name in drawn["treatment"]])
    assert draws_fit(table[[2]], np.zeros(3000, dtype=int), actions)
    # The level itself is the same record.
    assert set(ask(ledger, rows.assign(age="NA"))["status"]) == {"as before"}
    assert set(ask(ledger, holes.assign(day=2), missing="age=old")["status"]) == {"drawn"}
    assert set(ask(ledger, rows.assign(age="old", day=2))["status"]) == {"as before"}
    assert set(ask(ledger, rows.assign(age="young", day=2))["status"]) == {"as before: record changed"}


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("sex", "x", "sex: must be one of f, m, got 'x'"),
        ("sex", None, "sex: must be one of f, m, is missing; --missing sex=LEVEL says"),
        ("patient", " ", "patient: is missing"),
        ("day", None, "day: is missing"),
        ("patient", "0", "patient, day: an earlier row has the same patient and event"),
    ],
)
def test_rows_that_do_not_fit_are_listed_and_nothing_is_drawn(ledger, column, value, said):
    rows = people(*((str(number), "1", number % 6) for number in range(40)))
    rows.loc[30, column] = value
    with pytest.raises(DataError) as error:
        ask(ledger, rows)
    assert str(error.value).startswith(f"row 30: {said}")
    assert ledger.head == 0


def test_without_a_rule_a_missing_hidden_value_is_refused_and_no_hidden_value_is_shown(ledger):
    problem = DecisionProblem(
        pd.DataFrame(UTILITIES[:2], pd.Index(["young", "old"], name="age"), TREATMENTS), [0.5, 0.5], AnyRecord()
    )
    rows = people(*((number, 1, 0) for number in range(25))).assign(age="secret")
    with pytest.raises(DataError) as error:
        ask(ledger, rows, problem)
    lines = str(error.value).splitlines()
    assert len(lines) == 21
    must = "must be one of young, old; --missing age=LEVEL says what a value stands for that is missing or mistyped"
    assert lines[0] == f"row 0: age: {must}"
    assert lines[-1] == "... and 5 more"
    assert "secret" not in str(error.value)
    assert set(ask(ledger, rows, problem, missing=["old"])["status"]) == {"drawn"}


def test_ids_and_events_are_the_same_in_any_file(tmp_path, ledger):
    rows = people((7, 1, 0), (8, 2, 5), ("é", 1, 3))
    ask(ledger, rows)
    rows.assign(patient=[" 7", "8 ", "e\u0301"], day=["1", "2", "1"]).to_csv(tmp_path / "p.csv", index=False, sep=";")
    rows.assign(patient=["7", "8", "é"], day=[1.0, 2.0, 1.0]).to_parquet(tmp_path / "p.parquet")
    for name in ("p.csv", "p.parquet"):
        assert set(ask(ledger, tmp_path / name)["status"]) == {"as before"}


def test_records_without_features_are_numbers(ledger):
    problem = DecisionProblem(UTILITIES, PRIOR, AnyRecord(), TREATMENTS)
    rows = pd.DataFrame({"patient": [1, 2], "day": 1, "record": [0, 5]})
    assert ask(ledger, rows, problem)["status"].tolist() == ["drawn", "drawn"]
    assert ledger.releases()["hides"][0] == ["record"]
    with pytest.raises(DataError, match="row 1: record: must be one of 0"):
        ask(ledger, rows.assign(record=[0, 6], day=2), problem)


# The command.

PUBLIC_AGE = STUDY.replace('adjacency = "any-record"', 'public = ["age"]')
ASKED = {"--study": "small.toml", "--epsilon": "1", "--id": "patient", "--event": "day", "--ledger": "ledger.sqlite"}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder, with a study of which age alone is public, 20 patients, and a ledger."""
    write_small_study(tmp_path, PUBLIC_AGE)
    monkeypatch.chdir(tmp_path)
    killed_decisions.write_patients(Path("today.csv"), [(f"P{number}", 1, number) for number in range(20)])
    Ledger("ledger.sqlite", 2)
    return tmp_path


def decide(*arguments, patients="today.csv"):
    asked = [word for option, value in ASKED.items() if option not in arguments for word in (option, value)]
    return main(["decide", patients, *asked, *map(str, arguments)])


def rows_of(name):
    with Path(name).open(newline="") as stream:
        return list(csv.reader(stream))


@pytest.mark.usefixtures("here")
def test_treatments_and_statuses_are_in_files_of_their_own(capsys):
    assert decide("--out", "drawn.csv") == 0
    said = capsys.readouterr()
    assert "entry 1 of ledger.sqlite; each new decision costs its patient ε = 1 (budget 2 a person)" in said.out
    header, *rows = rows_of("drawn.csv")
    assert header == ["patient", "treatment"]
    assert {patient for patient, _ in rows} == {f"P{number}" for number in range(20)}
    header, *private = rows_of("drawn.private.csv")
    assert header == ["patient", "day", "treatment", "status"]
    assert [[patient, treatment] for patient, _, treatment, _ in private] == rows
    assert {status for *_, status in private} == {"drawn"}
    assert Path("drawn.private.csv").stat().st_mode & 0o777 == 0o600
    assert "P1" not in said.out + said.err


@pytest.mark.usefixtures("here")
def test_the_order_of_the_rows_says_nothing_of_that_of_the_file():
    frame = pd.read_csv("today.csv")
    orders = []
    for number, order in enumerate([frame.index, frame.index[::-1]]):
        frame.loc[order].to_csv("today.csv", index=False)
        assert decide("--out", f"drawn-{number}.csv") == 0
        orders.append([patient for patient, _ in rows_of(f"drawn-{number}.csv")[1:]])
    assert orders[0] == orders[1]
    assert orders[0] not in (frame["patient"].tolist(), sorted(frame["patient"]))


@pytest.mark.usefixtures("here")
def test_the_order_is_kept_where_that_is_asked_for_and_it_is_said(capsys):
    assert decide("--out", "drawn.parquet", "--keep-order") == 0
    assert "the order of today.csv is published" in capsys.readouterr().err
    assert pd.read_parquet("drawn.parquet")["patient"].tolist() == [f"P{number}" for number in range(20)]
    assert pd.read_parquet("drawn.private.parquet").columns.tolist() == ["patient", "day", "treatment", "status"]


def test_values_that_a_level_stands_for_are_counted_for_the_hospital_alone(here, capsys):
    table = pd.read_csv(here / "today.csv").assign(fever=["yes"] * 3 + [None] * 2 + [0] * 15)
    table.to_csv(here / "mistyped.csv", index=False)
    assert decide("--missing", "fever=1", "--dry-run", "--json", patients="mistyped.csv") == 0
    document = json.loads(capsys.readouterr().out)
    told = "fever is missing or unknown in 5 rows, which count as 1: are they mistyped?"
    assert document["not_private"]["warnings"] == [told]
    assert document["warnings"] == []


@pytest.mark.usefixtures("here")
def test_a_rerun_leaves_the_treatments_as_they_are_and_other_patients_need_another_file(capsys):
    assert decide("--out", "drawn.csv") == 0
    before = Path("drawn.csv").read_bytes()
    assert decide("--out", "drawn.csv") == 0
    assert "ledger.sqlite has no new entry; its last is 1" in capsys.readouterr().out
    assert Path("drawn.csv").read_bytes() == before
    killed_decisions.write_patients(Path("more.csv"), [("P1", 1, 1), ("new", 1, 1)])
    assert decide("--out", "drawn.csv", patients="more.csv") == 2
    assert "is there, and new decisions are asked for" in capsys.readouterr().err
    killed_decisions.write_patients(Path("fewer.csv"), [("P1", 1, 1)])
    assert decide("--out", "drawn.csv", patients="fewer.csv") == 2
    assert Path("drawn.csv").read_bytes() == before
    assert (Ledger("ledger.sqlite").head, Ledger("ledger.sqlite").spent("new")) == (1, 0)


def test_no_file_beside_out_is_overwritten_by_new_decisions(here, capsys):
    private = here / "drawn.private.csv"
    private.write_text("precious")
    assert decide("--out", "drawn.csv") == 2
    assert "drawn.private.csv: is there, and new decisions are asked for" in capsys.readouterr().err
    assert private.read_text() == "precious"
    assert Ledger("ledger.sqlite").head == 0


@pytest.mark.usefixtures("here")
def test_a_table_of_counts_is_charged_to_the_same_patients():
    counted = ("--as", "table", "--column", "fever", "--levels", "fever=0,1", "--epsilon", "1.5", "--out", "counts.csv")
    Path("spaces.csv").write_text(Path("today.csv").read_text().replace("P7,", " P7 ,"))
    assert main(["privatize", "spaces.csv", *counted, "--id", "patient", "--ledger", "ledger.sqlite"]) == 0
    assert decide("--out", "drawn.csv") == 0
    assert {status for *_, status in rows_of("drawn.private.csv")[1:]} == {"refused: budget"}
    assert Ledger("ledger.sqlite").spent("P7") == Decimal("1.5")


def test_a_dry_run_says_what_comes_and_writes_nothing(here, capsys):
    rows = [("P1", 1, 1), ("P2", 1, 3), ("P3", 4, 1), ("P3", 5, 1), ("P3", 6, 1), *(("Q", day, 1) for day in range(3))]
    assert decide("--out", "first.csv") == 0
    killed_decisions.write_patients(Path("today.csv"), rows)
    before = {path: path.read_bytes() for path in here.iterdir()}
    capsys.readouterr()
    assert decide("--dry-run", "--json") == 0
    forecast = json.loads(capsys.readouterr().out)["not_private"]["statuses"]
    assert {path: path.read_bytes() for path in here.iterdir()} == before
    assert decide("--out", "second.csv", "--json") == 0
    assert json.loads(capsys.readouterr().out)["not_private"]["statuses"] == forecast
    assert forecast == {"as before": 1, "as before: record changed": 1, "drawn": 3, "refused: budget": 3}


@pytest.mark.usefixtures("here")
def test_where_a_publication_is_seen_each_gets_the_best_and_the_randomised_entry_is_published(capsys):
    n = 3000
    killed_decisions.write_patients(Path("today.csv"), [(f"P{number}", 1, number % 32) for number in range(n)])
    assert decide("--out", "drawn.csv", "--seen", "publication") == 0
    said = capsys.readouterr().out
    assert "drawn.csv: the best treatment for each patient. NOT for publication" in said
    problem = ps.build_problem(ps.load_study("small.toml"))
    records = {f"P{number}": number % 32 for number in range(n)}
    for patient, treatment in rows_of("drawn.csv")[1:]:
        assert treatment == problem.actions[problem.best_actions[records[patient]]]
    published = rows_of("drawn.published.csv")[1:]
    assert len(published) == n
    actions = [problem.actions.index(treatment) for _, treatment in published]
    table = make_policy("randomized-response", epsilon=1).fit(problem).probabilities
    assert draws_fit(table, np.array([records[patient] for patient, _ in published]), np.array(actions))
    modes = {name: Path(name).stat().st_mode & 0o077 for name in ("drawn.csv", "drawn.private.csv")}
    assert modes == {"drawn.csv": 0, "drawn.private.csv": 0}
    both = ps.decide(
        "small.toml", "today.csv", epsilon=1, id="patient", event="day", ledger="ledger.sqlite", seen="publication"
    )
    assert dict(published) == dict(zip(both["patient"], both["published"], strict=True))
    assert set(both["status"]) == {"as before"}


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--out", "x.csv", "--seed", 1), 2, "--seed does not go with decide"),
        ((), 2, "decide needs --out"),
        (("--out", "x.csv", "--policy", "greedy"), 4, "reveals more than it claims"),
        (("--out", "x.csv", "--id", "age"), 2, "id must be a column of its own"),
        (("--out", "x.csv", "--event", "night"), 3, "unknown column 'night'"),
        (("--out", "x.csv", "--ledger", "typo.sqlite"), 3, "there is no such ledger"),
        (
            ("--out", "x.csv", "--epsilon", "3"),
            4,
            "costs ε = 3, which is more than the budget of a person, 2",
        ),
        (("--dry-run", "--epsilon", "3"), 4, "costs ε = 3, which is more than the budget of a person, 2"),
        (
            ("--out", "x.csv", "--epsilon", "0,5"),
            2,
            "--epsilon must be one number with a decimal point, such as 0.5, got",
        ),
        (("--out", "x.csv", "--epsilon", "1e-400"), 2, "1e-400 is too small for a number"),
        (("--out", "x.csv", "--epsilon", "inf"), 2, "--epsilon must be a finite number >= 0, got 'inf'"),
        (
            ("--out", "x.csv", "--missing", "fever=1", "--missing", "0"),
            2,
            "missing has two levels for fever: fever=1 and 0",
        ),
        (("--out", "today.csv"), 2, "is the patients"),
    ],
)
def test_what_does_not_fit_is_one_line_and_nothing_is_drawn(here, capsys, arguments, code, said):
    before = {path.name for path in here.iterdir()}
    try:
        ended = decide(*arguments)
    except SystemExit as stop:
        ended = stop.code
    lines = capsys.readouterr().err.splitlines()
    assert ended == code
    assert [said in line for line in lines] == [True]
    assert {path.name for path in here.iterdir()} == before
    assert Ledger("ledger.sqlite").head == 0


@pytest.mark.usefixtures("here")
def test_bad_rows_are_listed_by_line_without_hidden_values(capsys):
    text = Path("today.csv").read_text()
    Path("today.csv").write_text(text.replace("old", "ancient") + 'P1,1,1,1,1,1,"young"\nP99,1,secret,1,1,1,young\n')
    assert decide("--out", "drawn.csv") == 3
    error = capsys.readouterr().err
    assert "today.csv:3: row 2: age: must be one of young, old, got 'ancient'" in error
    assert "infected: must be one of 0, 1; --missing infected=LEVEL" in error
    assert "secret" not in error
    assert not Path("drawn.csv").exists()


@pytest.mark.usefixtures("here")
def test_a_full_disk_after_the_charge_costs_budget_and_the_rerun_gives_what_was_drawn(capsys, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(module, "sync", full)
        assert decide("--out", "drawn.csv") == 2
    assert "what was drawn is counted: run the same command again" in capsys.readouterr().err
    assert not Path("drawn.csv").exists()
    stored = sqlite3.connect("ledger.sqlite").execute("SELECT treatment FROM decision").fetchall()
    assert decide("--out", "drawn.csv") == 0
    assert Counter(treatment for _, treatment in rows_of("drawn.csv")[1:]) == Counter(name for (name,) in stored)


# Whose decision it is.


EDITED = SCENARIO.replace("death = 10", "death = 30")


def write_other(name, scenario=EDITED):
    """A study of the same treatments, and of other numbers or features."""
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.with_suffix(".scenario.toml").write_text(scenario)
    path.write_text(PUBLIC_AGE.replace("scenario.toml", f"{path.stem}.scenario.toml"))


def statuses_of(study, out, *arguments, patients="today.csv"):
    """Which statuses a run of a study wrote."""
    assert decide("--study", study, "--out", out, *arguments, patients=patients) == 0
    return {status for *_, status in rows_of(f"{Path(out).stem}.private.csv")[1:]}


@pytest.mark.usefixtures("here")
def test_names_of_columns_may_have_margins(ledger):
    rows = people(("P", 1, 0), ("Q", 1, 5))
    spaced = rows.rename(columns={name: f" {name} " for name in rows.columns})
    spaced.to_csv("spaced.csv", index=False)
    assert set(ask(ledger, "spaced.csv")["status"]) == {"drawn"}
    assert set(ask(ledger, spaced)["status"]) == {"as before"}
    with pytest.raises(DataError, match="day"):
        ask(ledger, spaced.assign(day=1))


@pytest.mark.usefixtures("here")
def test_a_study_that_is_edited_or_renamed_keeps_its_decisions():
    assert statuses_of("small.toml", "1.csv") == {"drawn"}
    Path("scenario.toml").write_text(EDITED)
    assert statuses_of("small.toml", "2.csv") == {"as before"}
    killed_decisions.write_patients(Path("new.csv"), [("new", 1, 1)])
    assert statuses_of("small.toml", "new1.csv", patients="new.csv") == {"drawn"}
    Path("small.toml").rename("ward.toml")
    assert statuses_of("ward.toml", "3.csv") == {"as before"}
    assert statuses_of("ward.toml", "new3.csv", patients="new.csv") == {"as before"}
    assert {Path(f"{number}.csv").read_bytes() for number in (1, 2, 3)} == {Path("1.csv").read_bytes()}


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("name", "scenario"),
    [
        ("other.toml", EDITED),
        ("elsewhere/small.toml", SCENARIO.replace("smoker", "diabetes")),
    ],
    ids=["another name", "other features"],
)
def test_what_another_study_decided_is_refused_by_row_though_its_treatments_have_the_same_names(capsys, name, scenario):
    assert decide("--out", "drawn.csv") == 0
    write_other(name, scenario)
    ledger = Path("ledger.sqlite").read_bytes()
    table = pd.read_csv("today.csv").rename(columns={"smoker": "diabetes"} if "diabetes" in scenario else {})
    table.assign(day=[1, 2] * 10).to_csv("mixed.csv", index=False)
    capsys.readouterr()
    assert decide("--study", name, "--out", "mixed.out.csv", patients="mixed.csv") == 3
    lines = capsys.readouterr().err.splitlines()
    told = "patient, day: was decided by the study small: this study needs an event of its own."
    places = [f"policysim: mixed.csv:{row + 1}: row {row}: {told}" for row in range(1, 20, 2)]
    assert [line.startswith(place) for line, place in zip(lines, places, strict=True)] == [True] * 10
    assert not Path("mixed.out.csv").exists()
    assert Path("ledger.sqlite").read_bytes() == ledger
    table.assign(day=2).to_csv("mixed.csv", index=False)
    assert statuses_of(name, "mixed.out.csv", patients="mixed.csv") == {"drawn"}


@pytest.mark.usefixtures("here")
def test_beyond_the_budget_a_treatment_that_another_study_drew_is_not_given():
    """In the other study all treatments cost so much that nothing is the best for all."""
    assert statuses_of("small.toml", "1.csv", "--epsilon", "2") == {"drawn"}
    table = pd.read_csv("today.csv").assign(day=2)
    table.to_csv("today.csv", index=False)
    assert statuses_of("small.toml", "2.csv") == {"refused: budget"}
    assert sorted(rows_of("2.csv")) == sorted(rows_of("1.csv"))
    table.assign(day=3).to_csv("today.csv", index=False)
    write_other("other.toml", SCENARIO.replace("cost = 0.0", "cost = 100.0"))
    assert statuses_of("other.toml", "3.csv") == {"refused: budget"}
    assert {treatment for _, treatment in rows_of("3.csv")[1:]} == {"none"}


@pytest.mark.usefixtures("here")
def test_a_ledger_that_did_not_note_studies_keeps_its_decisions_and_those_of_its_only_study_are_that_ones(capsys):
    write_other("other.toml")
    assert statuses_of("small.toml", "1.csv") == {"drawn"}

    def as_format_1():
        with sqlite3.connect("ledger.sqlite") as sql:
            for statement in ("ALTER TABLE patient DROP entry", "ALTER TABLE decision DROP entry"):
                sql.execute(statement)
            sql.execute("PRAGMA user_version = 1")
        sql.close()

    as_format_1()
    assert statuses_of("small.toml", "2.csv") == {"as before"}
    as_format_1()
    assert decide("--study", "other.toml", "--out", "3.csv") == 3
    assert "was decided by the study small" in capsys.readouterr().err
    pd.read_csv("today.csv").assign(day=2).to_csv("second.csv", index=False)
    assert statuses_of("other.toml", "4.csv", patients="second.csv") == {"drawn"}
    # Of two studies nobody knows which decided; a third did not.
    as_format_1()
    assert statuses_of("small.toml", "5.csv") == {"as before"}
    assert statuses_of("other.toml", "6.csv", patients="second.csv") == {"as before"}
    write_other("third.toml", SCENARIO.replace("death = 10", "death = 20"))
    assert decide("--study", "third.toml", "--out", "7.csv") == 3
    assert "was decided by another study" in capsys.readouterr().err


# Killed, and at once.


def killed(what, number):
    script = Path(killed_decisions.__file__)
    done = subprocess.run([sys.executable, script, what, str(number)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_killed_before_every_step_a_run_leaves_all_or_nothing_and_the_rerun_gives_what_was_counted():
    found = killed("steps", 2)
    assert found["wrong"] == []
    assert set(found["states"]) == {"nothing", "counted", "written"}
    assert sum(found["states"].values()) > 20


def test_killed_at_random_moments_the_same():
    found = killed("random", 6)
    assert found["wrong"] == []
    assert sum(found["states"].values()) == 6


def test_eight_processes_on_one_ledger_charge_each_patient_to_the_last_digit():
    found = killed("together", 100)
    assert found["codes"] == [0] * 8
    assert found["over budget"] > 0


def test_a_decision_without_its_charge_would_be_found(here):
    assert decide("--out", "drawn.csv", "--epsilon", killed_decisions.EPSILON) == 0
    assert len(killed_decisions.stored(here)) == 20
    with sqlite3.connect("ledger.sqlite") as sql:
        sql.execute("UPDATE patient SET spent = '0.2' WHERE patient = (SELECT min(patient) FROM patient)")
    with pytest.raises(AssertionError):
        killed_decisions.stored(here)
