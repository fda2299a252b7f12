"""What cannot be an outcome is refused with the study's line, the reason and what to write; outcomes are not."""

import numpy as np
import pandas as pd
import pytest
from small_logs import keyed

from envs.toml_reader import InputFileError
from policysim.cli.main import main
from policysim.files.data_table import DataTable
from policysim.logs.log_source import TABLE
from policysim.logs.log_tables import LogTables
from policysim.logs.outcomes import check_outcomes

N = 200
STUDY = """
[data]
file = "trial.csv"
treatment = "arm"
propensity = "equal"
outcome = {{ {column} = 1.0 }}
range = [-1000, 1000]
[data.features]
years = {{ cuts = [30, 50] }}
site = {{ levels = ["a", "b"] }}
"""


def trial(column, values):
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "arm": rng.integers(0, 2, N),
            "years": rng.permutation(np.arange(N) / 4 + 20),
            "site": rng.choice(["a", "b"], N),
        }
    )
    return frame.assign(**{column: values(frame, rng)})


def numbers(_, rng):
    return rng.normal(40, 9, N).round(1)


def whole(_, rng):
    return rng.integers(1, 90, N)


def events(_, rng):
    return rng.integers(0, 2, N)


def one_to_n(_, rng):
    return rng.permutation(N) + 1


@pytest.mark.parametrize(
    ("column", "values", "said"),
    [
        ("seniority", lambda f, _: f["years"] * 12, "the feature years decides it"),
        ("older", lambda f, _: (f["years"] > 41).astype(int), "the feature years decides it"),
        ("patient_id", lambda _, rng: rng.choice(900, N, replace=False), "it is an id"),
        ("chart", one_to_n, "it is an id"),
    ],
)
def test_what_cannot_be_an_outcome_is_refused(tmp_path, load, refused, *, column, values, said):
    text, frame = STUDY.format(column=column), trial(column, values)
    (line,) = refused(text, trial__csv=frame)
    assert line.startswith(f"{(tmp_path / 'study.toml').as_posix()}:6: data.outcome: {column} cannot be the outcome: ")
    key = f'outcome_checked = ["{column}"]'
    assert said in line and key in line
    # Who has looked at it can have it.
    assert load(keyed(text, key), trial__csv=frame).n_read == N


def test_a_time_is_refused_where_another_column_tells_who_was_censored(load):
    frame = trial("time", whole)
    assert load(STUDY.format(column="time"), trial__csv=frame).n_read == N
    frame["status"] = np.where(frame["site"] == "a", 1, 2)[np.random.default_rng(0).permutation(N)]
    with pytest.raises(InputFileError, match=r"time of follow-up.*\(by status\); name time, event and horizon"):
        load(STUDY.format(column="time"), trial__csv=frame)


@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("success", events),
        ("age", whole),
        ("patient_satisfaction", lambda _, rng: rng.integers(1, 6, N)),
        ("died_before_day_28", events),
        ("cd4_change", numbers),
        ("change_from_baseline", numbers),
        ("birth_weight", numbers),
        ("days_in_hospital", whole),
        ("time_in_range", numbers),
        ("score_at_week_12", whole),
        ("survival", events),
        ("age_at_death", whole),
        ("result", lambda f, rng: f["years"] + rng.normal(0, 0.5, N)),
        ("no_event", lambda _, rng: (rng.random(N) > 0.02).astype(int)),
    ],
)
def test_outcomes_are_taken(load, column, values):
    frame = trial(column, values).assign(event=lambda f: (f["years"] * 7 % 2 > 1).astype(int))
    assert load(STUDY.format(column=column), trial__csv=frame).n_read == N


def test_an_outcome_that_is_only_shown_is_not_looked_at(load):
    frame = trial("age", whole).assign(success=np.arange(N) % 2)
    text = STUDY.format(column="success").replace("success = 1.0", "success = 1.0, age = 0.0")
    assert set(load(text, trial__csv=frame).outcomes) == {"success", "age"}


def test_rows_of_other_tables_are_not_taken_for_each_other(read_section, load):
    """Of three tables no row belongs to another yet: nothing is decided by a feature."""
    frame = trial("older", lambda f, _: (f["years"] > 41).astype(int))
    load(STUDY.format(column="older").replace("[data]", '[data]\noutcome_checked = ["older"]'), trial__csv=frame)
    source = read_section(STUDY.format(column="older"))
    with pytest.raises(InputFileError, match="the feature years decides it"):
        check_outcomes(source, LogTables({TABLE: DataTable("trial.csv", frame)}, ""))
    three = {"features": frame, "actions": frame, "outcomes": frame}
    check_outcomes(source, LogTables({role: DataTable(role, table) for role, table in three.items()}, ""))


def test_unread_guesses_are_counted(tmp_path, read_section, section, small_trial):
    small_trial.to_csv(tmp_path / "trial.csv")
    assert read_section(section).unread == 0
    marked = section.replace("\nage", "\n# CHECK these\nage").replace("[0, 1] }", "[0, 1] } # CHECK")
    assert read_section(marked).unread == 2


@pytest.mark.parametrize("workers", [[], ["--workers", "1"]])
def test_an_outcome_that_is_the_same_for_all_is_refused(tmp_path, capsys, workers):
    study = tmp_path / "trial.toml"
    frame = pd.DataFrame({"arm": ["a", "b"] * 80, "y": 1, "sex": ["f", "f", "m", "m"] * 40})
    frame.to_csv(tmp_path / "t.csv", index=False)
    study.write_text(
        '[data]\nfile = "t.csv"\ntreatment = "arm"\npropensity = "equal"\noutcome = { y = 1 }\n'
        '[data.treatments]\na = "a"\nb = "b"\n[data.features]\nsex = { levels = ["f", "m"] }\n'
    )
    assert main(["compare", str(study), *workers]) == 2
    assert "trial.toml:5: data.outcome: y is the same in all rows" in capsys.readouterr().err
