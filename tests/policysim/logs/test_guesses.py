"""What init takes columns for: by option, or by names that leave no doubt; all else is asked, with the command."""

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from policies.levels import level_codes
from policysim.errors import UsageError
from policysim.files.bad_rows import DataError
from policysim.logs.column_summary import not_a_patient, summarise, together
from policysim.logs.guess_roles import InitAsked, Named, guess_features, guess_roles, round_cuts
from policysim.logs.log_tables import joined_columns
from policysim.logs.study_text import treatment_names

N = 400


def summaries(frame):
    return [summarise(frame[name], name) for name in frame]


def columns(**values):
    """Summaries of columns; a scalar or short list is repeated, and shuffled."""
    rng = np.random.default_rng(0)
    return summaries(pd.DataFrame({name: rng.permutation(np.resize(value, N)) for name, value in values.items()}))


def guess(made, **named):
    asked = InitAsked("trial.csv", Named(**named))
    roles = guess_roles(made, asked)
    return roles, guess_features(roles, asked)


def roles(made, **named):
    return guess_roles(made, InitAsked("trial.csv", Named(**named)))


def features(made=(), **values):
    """The features that are declared beside an arm and an outcome, by name, and what is left out."""
    found = guess([*made, *columns(arm=[0, 1], success=[0, 1], **values)])[1]
    return {one.feature.name: one for one in found.chosen}, found.left_out


def asked(made, **named):
    """The lines that ask, and the command to type, without its first words."""
    with pytest.raises(UsageError) as error:
        guess(made, **named)
    *lines, command = str(error.value).splitlines()
    assert command.startswith("Type: policysim init DATA")
    return [line.removeprefix("trial.csv: ") for line in lines], command.removeprefix("Type: policysim init DATA ")


@pytest.mark.parametrize("name", ["Treatment", "TRT", "treatment_group", "Arm", "trtArm", "Randomised to"])
def test_the_treatment_goes_by_a_name_that_leaves_no_doubt(name):
    assert roles(columns(**{"ward": [0, 1], name: ["x", "y", "z"], "success": [0, 1]})).treatment.name == name


@pytest.mark.parametrize("name", ["group", "prior_treatment", "arm_or_hand", "treatment_days", "a"])
def test_no_other_name_is_a_treatment(name):
    with pytest.raises(UsageError, match="which column is the treatment"):
        roles(columns(**{"ward": [0, 1], name: ["x", "y", "z"], "success": [0, 1]}))


def test_two_that_may_be_the_treatment_are_asked_for_even_if_one_decides_the_other():
    arms = np.arange(N) % 4
    made = summaries(pd.DataFrame({"treat": (arms > 0) * 1, "arms": arms, "success": np.arange(N) // 4 % 2}))
    lines, command = asked(made)
    assert lines == ["which column is the treatment, or which make it together? treat, arms, success"]
    assert command == "--treatment treat"
    taken = guess([*made, *columns(ward=[0, 1])], treatment=("arms",))
    assert taken[1].left_out == {"treat": "one of it and the treatment decides the other"}


def test_all_that_is_not_clear_is_asked_at_once_and_the_command_is_whole():
    made = columns(qsmk=[0, 1], years=range(30, 70), **{"it's, a": [1, 2, 3]}, wt82=range(50, 90))
    lines, command = asked(made, features=("years", "it's, a"))
    assert lines == [
        "which column is the treatment, or which make it together? qsmk",
        "which column is the outcome? wt82",
    ]
    assert command == """--treatment qsmk --outcome wt82 --features 'years,"it'"'"'s, a"'"""
    found, declared = guess(made, treatment=("qsmk",), outcome="wt82", features=("years", "it's, a"))
    assert (found.treatment.name, found.outcome.name, found.id) == ("qsmk", "wt82", "")
    assert [one.feature.name for one in declared.chosen] == ["years", "it's, a"]


@pytest.mark.parametrize(
    ("name", "values", "harmful"),
    [
        ("success", [0, 1], False),
        ("Response", [0, 1], False),
        ("death", [0, 1], True),
        ("adverse_event", [0, 1], True),
        ("reward", [-2.5, 0.1, 3.0], False),
    ],
)
def test_the_outcome_goes_by_a_name_that_leaves_no_doubt(name, values, harmful):
    found = roles(columns(arm=[0, 1], sex=[0, 1], **{name: values}, site=[1, 2, 3]))
    assert (found.outcome.name, found.harmful, found.doubt) == (name, harmful, "")


def test_of_two_outcomes_or_none_by_name_one_is_asked_for():
    made = columns(arm=[0, 1], outcome=[1.5, 2, 3], success=[0, 1], bp=[90.5, 120, 130])
    assert asked(made) == (["which column is the outcome? outcome, success, bp"], "--outcome outcome")
    found, declared = guess(made, outcome="success")
    assert found.outcome.name == "success"
    assert set(declared.left_out) == {"outcome"}
    assert asked(columns(arm=[0, 1], bp=[90.5, 120]))[1] == "--outcome bp"


@pytest.mark.parametrize(
    ("values", "got"), [(["yes", "no"], "no, yes"), ([0], "0"), (["dead"], "dead"), ([np.nan], "no values")]
)
def test_no_other_column_is_taken_in_place_of_an_outcome_that_cannot_be_used(values, got):
    made = columns(arm=[0, 1], age=range(30, 70), outcome=values)
    with pytest.raises(DataError) as error:
        roles(made)
    said = f"it must be numbers, such as 0 and 1, got {got}"
    assert str(error.value) == f"trial.csv: outcome is named like the outcome, but {said}"
    with pytest.raises(DataError, match=f"^trial.csv: outcome cannot be the outcome: {said}$"):
        roles(made, outcome="outcome")


def test_an_outcome_that_the_treatment_decides_is_refused():
    arms = pd.Series(np.arange(N) % 2)
    made = [summarise(arms, "arm"), summarise(1 - arms, "outcome"), *columns(age=range(30, 70))]
    with pytest.raises(DataError, match="but it reveals the treatment: arm decides it"):
        roles(made)


def test_an_outcome_that_looks_like_none_is_taken_with_a_doubt():
    made = columns(arm=[0, 1], time=range(40), status=[0, 1], bp=[1, 2, 3])
    assert "it is a time of follow-up" in roles(made, outcome="time").doubt


def test_a_time_and_an_event_are_taken_by_name_or_asked_for():
    lung = columns(arm=[0, 1], time=range(5, 300, 7), status=[0, 1, 1], karno=[60, 80])
    found = roles(lung)
    assert (found.time.name, found.outcome.name, found.harmful) == ("time", "status", False)
    # 1 of "cens" is not clear, nor which of two times it is.
    for more in ({"cens": [0, 1]}, {"days": range(40)}):
        one = [column for column in lung if column.name != "status" or "days" in more]
        lines, command = asked([*one, *columns(**more)])
        assert lines[0].startswith("which are the time (time")
        assert command.startswith("--time time --event ")
    # A name of its own beside them says which it is.
    assert roles([*lung, *columns(cured=[0, 1, 1])]).outcome.name == "cured"


def test_the_horizon_is_the_latest_time_to_which_fifty_of_every_arm_are_followed_or_asked_for():
    rng = np.random.default_rng(8)
    for n in (110, 130, 150, 200, 300):
        frame = pd.DataFrame({"arm": rng.integers(0, 2, n), "days": rng.integers(0, 30, n)})
        frame["event"] = rng.choice([0, 1, np.nan], n, p=[0.5, 0.4, 0.1])
        known = frame.dropna()
        fitting = [t for t in range(1, 31) if (known[known.days >= t].arm.value_counts().reindex([0, 1]) >= 50).all()]
        if fitting:
            assert roles(summaries(frame), time="days", event="event").horizon == max(fitting)
        else:
            lines, command = asked(summaries(frame), time="days", event="event")
            assert lines[0].startswith("to which horizon? Fewer than 50 patients of an arm are followed; to ")
            assert command.startswith("--time days --event event --horizon ")
        assert roles(summaries(frame), time="days", event="event", horizon=3.0).horizon == 3


@pytest.mark.parametrize(
    ("times", "events", "said"),
    [
        ([-1, 5], [0, 1], "trial.csv: time must be times, numbers >= 0, got -1, 5"),
        (["soon", "later"], [0, 1], "trial.csv: time must be times, numbers >= 0, got later, soon"),
        ([1, 2], [1, 2], "must be 1 for the event and 0 where follow-up ended before: make them 0 and 1, got 1, 2"),
        ([1, 2], ["dead", "alive"], "make them 0 and 1, got alive, dead"),
    ],
)
def test_times_and_events_that_cannot_be_any_are_refused(times, events, said):
    with pytest.raises(DataError) as error:
        roles(columns(arm=[0, 1], time=times, status=events), time="time", event="status")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"treatment": ("arn",)}, "--treatment: trial.csv: unknown column 'arn'; did you mean 'arm'? known: arm, bp, "),
        ({"treatment": ("bp",)}, "--treatment: bp has 40 distinct values; a treatment needs 2 to 20"),
        ({"treatment": ("arm", "bp")}, '--treatment: "arm, bp" has 80 distinct values; a treatment needs 2 to 20'),
        ({"outcome": "arm", "treatment": ("arm",)}, "--outcome 'arm' is the --treatment already: give another column"),
        ({"features": ("cured",), "outcome": "cured"}, "--features 'cured' is the --outcome already"),
        ({"id": "bp"}, "trial.csv: one row must be one patient, but bp has 40 values in 400 rows"),
        ({"time": "bp"}, "--time and --event go together"),
        ({"time": "bp", "event": "cured", "outcome": "relapse"}, "--time and --event go together, without --outcome"),
    ],
)
def test_what_is_named_is_checked(named, said):
    with pytest.raises(UsageError) as error:
        roles(columns(arm=[0, 1], bp=range(40), cured=[0, 1], relapse=[0, 1]), **named)
    assert str(error.value).startswith(said)


def test_an_id_is_distinct_and_named_so():
    made = columns(arm=[0, 1], success=[0, 1])
    for name in ("patient", "id", "Subject_ID", "pidnum"):
        assert roles([*made, *columns(**{name: range(N)})]).id == name
    for name, values in (("income", range(N)), ("who", [f"p{i}" for i in range(N)]), ("covid", [0, 1])):
        assert roles([*made, *columns(**{name: values})]).id == ""
    # What numbers the rows is no patient's id, and no feature.
    numbered = summaries(pd.DataFrame({"rownames": np.arange(N), "Unnamed: 0": np.arange(N), "n": np.arange(N) + 7}))
    found, left_out = features([*numbered, *columns(patient=range(N))], age=range(40))
    assert set(found) == {"age"}
    assert set(left_out) == {"rownames", "Unnamed: 0", "n"}


# Small tables with the shapes of public ones: which rows are no patients, and what to do.
TWO_EVENTS = pd.DataFrame({"rownames": range(200), "id": np.arange(200) // 2, "etype": np.arange(200) % 2 + 1})
VISITS = pd.DataFrame({"subject": np.arange(120) // 4, "week": np.arange(120) % 4 * 2})[5:]
PANEL = pd.DataFrame({"state": np.arange(110) // 11, "year": np.arange(110) % 11 + 2000})
HOLES = pd.DataFrame({"Chick": np.arange(120) // 12, "Time": np.arange(120) % 12}).drop(index=[5, 30, 31, 77])
CELLS = pd.DataFrame(
    {"sex": np.arange(24) % 2, "age": np.arange(24) // 2 % 3, "dead": np.arange(24) // 6 % 2, "Freq": 5}
)
CENSUS = pd.DataFrame(
    {name: np.arange(240) // k % m for name, k, m in (("fip", 1, 10), ("race", 10, 2), ("yr", 20, 12))}
)
CODES = pd.DataFrame({"unitid": 1000 + np.arange(90) // 3, "x": np.arange(90) % 7})


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (TWO_EVENTS, "id has 100 values in 200 rows: keep one of each in a new file, such as those with etype = 1"),
        (VISITS, "subject has 29 values in 115 rows: keep one of each in a new file, such as those with week = 2"),
        (PANEL, "each combination of state and year is there once"),
        (HOLES, "each combination of Chick and Time is there once"),
        (CELLS, "Freq is named like a count: write a row for each patient"),
        (CELLS.drop(columns="Freq").drop_duplicates(), "each combination of sex and age and dead is there once"),
        (CENSUS, "each combination of fip and race and yr is there once"),
        (CODES, "unitid has 30 values in 90 rows: keep one of each in a new file, such as the first"),
    ],
)
def test_rows_that_are_no_patients_are_refused_with_what_to_do(table, said):
    made = table.assign(arm=np.random.default_rng(1).integers(0, 2, len(table)), cured=0)
    made["cured"] = np.random.default_rng(2).integers(0, 2, len(table))
    with pytest.raises(UsageError) as error:
        roles(summaries(made), treatment=("arm",), outcome="cured")
    said = f"trial.csv: one row must be one patient, but {said}; if each row is a patient all the same, type it again "
    assert str(error.value) == f"{said}with --id none"
    assert roles(summaries(made), treatment=("arm",), outcome="cured", id="none").id == ""


def test_rows_of_patients_are_none_of_these():
    rng = np.random.default_rng(3)
    covariates = {"site": rng.integers(0, 8, N), "sex": rng.integers(0, 2, N), "age": rng.integers(20, 80, N)}
    trial = pd.DataFrame({"arm": np.arange(N) % 2, **covariates, "covid": rng.integers(0, 2, N)})
    assert not_a_patient(summaries(trial)) == ""
    # A site's id may repeat beside the patients' own, another patient's id may not.
    sites = trial.assign(id=rng.permutation(N), site_id=rng.integers(0, 30, N))
    assert not_a_patient(summaries(sites)) == ""
    assert "subject has " in not_a_patient(summaries(sites.assign(subject=np.arange(N) // 2)))
    # Every level as often as every other, several times each: a trial with blocks.
    blocks = pd.DataFrame({"arm": np.arange(N) % 2, "block": np.arange(N) // 2 % 4, "sex": np.arange(N) // 8 % 2})
    assert not_a_patient(summaries(blocks)) == ""
    assert not_a_patient(summaries(trial.assign(count=7)), ["count"]) == ""


def test_small_trials_are_hardly_ever_taken_for_a_grid():
    rng = np.random.default_rng(7)
    trials = [{f"x{i}": rng.integers(0, rng.integers(2, 30), 60) for i in range(8)} for _ in range(50)]
    assert [not_a_patient(summaries(pd.DataFrame(trial))) for trial in trials] == [""] * 50


@pytest.mark.parametrize(
    "name",
    [
        *("days", "time_to_event", "survival", "offtrt", "los", "post_bp", "adverse_event", "Follow-up BP", "toxicity"),
        *("loss", "rfstime", "dtime", "pfs", "fustat", "vital_status", "treat_change", "propensity"),
        *("stroke_14d", "pain_week4", "weight_6m", "visit 30 days"),
    ],
)
def test_what_sounds_later_is_left_out(name):
    made = columns(arm=[0, 1], success=[0, 1], ward=[0, 1], **{name: [1, 2, 3]})
    assert name in guess(made, outcome="success")[1].left_out


@pytest.mark.parametrize(
    "name",
    [
        *("age", "baseline_days", "prior_treatment", "pretreatment_bp", "days since diagnosis", "history_of_events"),
        *("drugs", "marital_status", "age_months", "diagtime", "x1"),
    ],
)
def test_what_was_known_before_is_not(name):
    assert name in features(**{name: [1, 2, 3]})[0]


def test_a_measurement_with_a_number_is_later_or_asked_for():
    made = {name: range(40) for name in ("cd40", "cd420", "bp_1", "bp_2", "x1", "x2")}
    lines, command = asked(columns(arm=[0, 1], success=[0, 1], **made))
    assert lines == ["shall bp_2 be a feature? its number may make it a later measurement than another's"]
    assert command == "--features cd40,bp_1,x1,x2"
    found = guess(columns(arm=[0, 1], success=[0, 1], **made), features=("bp_2", "x1"))[1]
    assert [one.feature.name for one in found.chosen] == ["bp_2", "x1"]
    assert set(found.left_out) == {"cd40", "cd420", "bp_1", "x2"}


def test_a_number_as_late_as_the_outcome_is_asked_for():
    made = {name: range(40) for name in ("wt71", "price82", "sales71_82", "age90", "re78")}
    lines, command = asked(columns(arm=[0, 1], **made), outcome="re78")
    assert [line.split()[1] for line in lines] == ["price82", "sales71_82"]
    assert command == "--outcome re78 --features wt71,age90"


def test_gaps_that_go_with_something_later_are_asked_for():
    rng = np.random.default_rng(6)
    death = rng.integers(0, 2, N)
    gone = rng.random(N) < 0.2
    frame = pd.DataFrame({"arm": np.arange(N) % 2, "death": death, "sex": rng.integers(0, 2, N)})
    frame["yrdth"] = np.where(death == 1, rng.integers(80, 93, N), np.nan)
    frame["weight"], frame["gain"] = (np.where(gone, np.nan, rng.normal(size=N)) for _ in range(2))
    for outcome, doubtful in (("death", ["yrdth"]), ("gain", ["yrdth", "weight"])):
        made = summaries(frame.drop(columns="gain") if outcome == "death" else frame)
        lines, command = asked(made, outcome=outcome)
        assert [line.split()[1] for line in lines] == doubtful
        assert all("goes with gaps in something later, or with what that was" in line for line in lines)
        assert command == f"--outcome {outcome} --features {'sex,weight' if outcome == 'death' else 'sex'}"


def test_a_column_that_tells_gaps_in_a_later_one_is_asked_for():
    cd496 = np.where(np.arange(N) % 5 == 0, np.nan, np.arange(N))
    told = summaries(pd.DataFrame({"cd496": cd496, "r": np.isnan(cd496) * 1}))
    lines, command = asked([*columns(arm=[0, 1], success=[0, 1], cd40=range(50), ward=[0, 1]), *told])
    assert [line.split()[1] for line in lines] == ["r"]
    assert command == "--features cd40,ward"


def test_what_tells_the_treatment_or_the_outcome_is_left_out():
    arms = np.arange(N) % 3
    score = np.random.default_rng(0).permutation(N) / 100
    frame = pd.DataFrame({"arm": arms, "dose": np.array(["none", "low", "high"])[arms], "any": (arms > 0) * 1})
    frame = frame.assign(score=score, success=(score > 2) * 1, ward=np.arange(N) // 3 % 2)
    left_out = guess(summaries(frame))[1].left_out
    assert left_out == {
        "dose": "one of it and the treatment decides the other",
        "any": "one of it and the treatment decides the other",
        "score": "decides the outcome",
    }


def test_levels_of_numbers_are_merged_until_an_arm_has_twenty_patients_of_each():
    arm = np.repeat([0, 1], N // 2)
    stage = np.tile(np.repeat([1, 2, 3, 4], [100, 60, 30, 10]), 2)
    karno = np.random.default_rng(1).permutation(np.resize(np.arange(10, 101, 5), N))
    frame = pd.DataFrame(
        {"arm": arm, "stage": stage, "karno": karno, "cured": np.arange(N) % 2, "sex": np.arange(N) // 2 % 2}
    )
    chosen = {one.feature.name: one for one in guess(summaries(frame))[1].chosen}
    assert chosen["stage"].feature.cuts == (2, 3)  # 4 joins 3
    assert list(chosen["stage"].counts) == [200, 120, 80]
    assert chosen["sex"].feature.levels == (0, 1)
    assert len(chosen["karno"].feature.cuts) <= 3


def test_merged_bins_have_enough_patients_or_are_asked_for():
    rng = np.random.default_rng(9)
    merged = 0
    for n, size in [(n, size) for n in (90, 120, 200, 400) for size in (2, 4, 8, 30)]:
        frame = pd.DataFrame({"x": np.minimum(rng.geometric(2 / size, n), size), "ward": rng.permutation(n) % 2})
        frame["arm"], frame["cured"] = rng.permutation(n) % 2, np.arange(n) // 2 % 2
        try:
            found = guess(summaries(frame))[1]
        except UsageError as error:
            assert "x be a feature? an arm has " in str(error)
            continue
        merged += 1
        for one in found.chosen:
            table = pd.crosstab(level_codes(one.feature, frame[one.feature.name]), frame["arm"])
            assert table.shape[0] >= 2 and table.to_numpy().min() >= 20
            assert table.sum(axis=1).tolist() == list(one.counts)
    assert merged >= 8


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["a"] * 190 + ["b"] * 190 + ["c"] * 20, "with c, fewer than 20"),
        ([0] * 385 + [1] * 15, "with 1, fewer than 20"),
        ([1.5, 2.5, 3.5, 4.5] * 97 + [np.nan] * 12, "with NA, fewer than 20"),
    ],
)
def test_rare_levels_that_cannot_be_merged_are_asked_for(values, said):
    made = columns(arm=[0, 1], success=[0, 1], ward=[0, 1], race=values)
    lines, command = asked(made)
    assert lines[0].startswith("shall race be a feature? an arm has ") and lines[0].endswith(said)
    assert command == "--features ward"
    one = guess(made, features=("race",))[1].chosen[0]
    assert one.few.endswith(said)
    # Where nothing is left, the command has them all.
    assert asked([column for column in made if column.name != "ward"])[1] == "--features race"


def test_levels_or_cuts_or_neither():
    found, left_out = features(
        few=[1, 2, 3], many=range(50), words=["a", "b"], names=[f"n{i}" for i in range(50)], same=[1]
    )
    assert found["few"].feature.levels == (1, 2, 3)
    assert found["words"].feature.levels == ("a", "b")
    assert len(found["many"].feature.cuts) == 3
    assert left_out == {
        "names": "50 distinct values, not all of them usual numbers",
        "same": "the same value in all rows",
    }


def test_missing_values_are_a_level_of_their_own():
    values = {"few": ["1", "", "2", "NA"] * 100, "many": [*np.arange(300.0), *[np.nan] * 100]}
    frame = pd.DataFrame(values).sample(frac=1, random_state=4).reset_index(drop=True)
    found, _ = features(summaries(frame))
    assert found["few"].feature.levels == (1, 2, "NA")
    assert list(found["few"].counts) == [100, 100, 200]
    assert found["many"].feature.levels[-1] == "NA" and found["many"].counts[-1] == 100
    assert np.bincount(level_codes(found["many"].feature, frame["many"])).tolist() == list(found["many"].counts)


def test_thirteen_signs_are_thirteen_features_and_a_domain_has_a_limit():
    found = guess(columns(arm=[0, 1], success=[0, 1], **{f"sign{i}": [0, 1] for i in "abcdefghijklm"}))[1]
    assert (len(found.chosen), found.n_records) == (13, 2**13)
    found = guess(columns(arm=[0, 1], success=[0, 1], **{f"sign{i}": [0, 1] for i in "abcdefghijklmnopqr"}))[1]
    assert (len(found.chosen), found.n_records) == (16, 2**16)
    assert found.left_out == dict.fromkeys(("signq", "signr"), "for no more than 100,000 records")


def test_columns_that_make_the_treatment_together_are_named_by_their_yes():
    aspirin, heparin = (np.array(["N", "Y"])[np.arange(N) // 2**place % 2] for place in range(2))
    dose = np.array(["0", "5", "10"])[np.arange(N) % 3]
    frame = pd.DataFrame({"aspirin": aspirin, "heparin": heparin, "dose": dose, "success": np.arange(N) // 7 % 2})
    found = roles(summaries(frame), treatment=("aspirin", "heparin"))
    named = dict(treatment_names(found))
    assert named == {"N, N": "none", "N, Y": "heparin", "Y, N": "aspirin", "Y, Y": "aspirin + heparin"}
    assert next(iter(named)) == "N, N"
    found = roles(summaries(frame), treatment=("aspirin", "dose"))
    assert ("Y, 10", "aspirin Y, dose 10") in treatment_names(found)


def test_a_control_comes_first():
    arm = summarise(pd.Series(["drug A", "drug B", "Placebo pill"] * 20), "arm")
    found = roles([arm, summarise(pd.Series([0, 1, 1, 0] * 15), "success")])
    assert [name for _, name in treatment_names(found)] == ["Placebo pill", "drug A", "drug B"]


@settings(max_examples=30)
@given(st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, 2.5, "a", "b c", ""])] * 3), min_size=2, max_size=12))
def test_joined_columns_are_the_same_as_in_the_log(rows):
    frame = pd.DataFrame(rows, columns=["x", "y", "z"]).astype(str)
    found = together(summaries(frame))
    texts = joined_columns([frame[name] for name in frame])
    assert [None if code < 0 else found.values[code] for code in found.codes] == texts.tolist()
    assert found.name == "x, y, z"


@given(st.lists(st.floats(-1e9, 1e9, allow_nan=False), min_size=13, max_size=60, unique=True))
def test_cuts_are_rising_and_leave_no_end_empty(values):
    cuts = round_cuts(summarise(pd.Series(values), "x"))
    assert 1 <= len(cuts) <= 3
    assert cuts == sorted(set(cuts))
    assert min(values) < cuts[0]
    assert cuts[-1] <= max(values)


@given(st.integers(1, 3), st.integers(0, 10**6))
def test_cuts_are_close_to_the_quartiles_of_many_values(power, seed):
    values = np.random.default_rng(seed).normal(10**power, 10**power / 5, 500)
    cuts = round_cuts(summarise(pd.Series(values), "x"))
    quartiles = np.quantile(values, [0.25, 0.5, 0.75])
    # Steps are at most a third of the middle half's width, and a cut is at most half a step away.
    assert np.abs(np.array(cuts) - quartiles).max() <= (quartiles[2] - quartiles[0]) / 6 + 1e-9
    # And round: at most three digits.
    assert all(float(f"{cut:.3g}") == cut for cut in cuts)


def test_cuts_that_people_would_choose():
    rng = np.random.default_rng(4)
    assert round_cuts(summarise(pd.Series(rng.integers(20, 60, 4_000)), "age")) == [30, 40, 50]
    # Most rows share a value: those with it, and those above; or those with it, and those below.
    assert round_cuts(summarise(pd.Series([0] * 900 + list(range(100, 200))), "cost")) == [100]
    assert round_cuts(summarise(pd.Series([100] * 900 + list(range(100))), "karno")) == [100]
    assert round_cuts(summarise(pd.Series([1e-300, 2e-300] * 40 + [3e-300]), "x")) in ([1e-300], [2e-300])


def test_few_rows_decide_nothing():
    first, second = (summarise(pd.Series(values), "x") for values in ([0, 1, 2, 3] * 2, [0, 1, 0, 1] * 2))
    assert not first.decides(second)
