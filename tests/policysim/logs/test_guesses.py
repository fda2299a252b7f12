"""What columns are taken for, by their names and values."""

import math
import re

import hypothesis.strategies as st
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from scipy.stats import chisquare

from policysim.files.bad_rows import DataError
from policysim.logs.guess_columns import guess_features, round_cuts, round_range, summarise, summarise_joined
from policysim.logs.guess_roles import Named, guess_roles, known_later
from policysim.logs.log_tables import joined
from policysim.logs.outcomes import round_down
from policysim.logs.study_text import treatment_names
from policysim.question.protocol import UsageError

N = 400


def columns(**values):
    """Summaries of columns; a scalar or short list is repeated."""
    rng = np.random.default_rng(0)
    made = {name: rng.permutation(np.resize(np.asarray(value), N)) for name, value in values.items()}
    return [summarise(pd.Series(value), name) for name, value in made.items()]


def roles(**values):
    made = columns(**{"arm": [0, 1], "success": [0, 1], **values})
    return guess_roles(made, "trial.csv", Named(outcome="success"))


def later(**values):
    return {column.name: reason for column, reason in roles(**values).later}


@pytest.mark.parametrize("name", ["Treatment", "TRT", "treatment_group", "Arm", "trtArm", "Randomised to"])
def test_the_treatment_goes_by_its_name(name):
    found = guess_roles(columns(**{"sex": [0, 1], name: ["x", "y", "z"], "success": [0, 1]}), "trial.csv")
    assert found.treatment.name == name


def test_the_column_that_decides_the_other_is_the_treatment():
    arms = np.arange(N) % 4
    coarse = [summarise(pd.Series((arms > 0).astype(int)), "treatment"), summarise(pd.Series(arms), "arms")]
    found = guess_roles([*coarse, *columns(success=[0, 1])], "trial.csv")
    assert found.treatment.name == "arms"
    assert {column.name for column, _ in found.later} == {"treatment"}


def test_a_control_comes_first():
    arm = summarise(pd.Series(["drug A", "drug B", "Placebo pill"] * 20), "arm")
    found = guess_roles([arm, summarise(pd.Series([0, 1, 1, 0] * 15), "success")], "trial.csv")
    assert [name for _, name in treatment_names(found)] == ["Placebo pill", "drug A", "drug B"]


def test_propensities_are_a_column_or_equal_or_estimated():
    assert roles().propensity == "equal"
    assert roles(propensity=[0.2, 0.5]).propensity == "propensity"
    assert roles(propensity=[0.2, 1.5]).propensity == "equal"
    uneven = roles(arm=[0, 0, 1])
    assert uneven.propensity == "estimate"
    assert uneven.equal_probability == pytest.approx(chisquare(uneven.treatment.counts).pvalue)


@pytest.mark.parametrize(
    ("name", "values", "harmful"),
    [
        ("success", [0, 1], False),
        ("Response", [0, 1], False),
        ("death", [0, 1], True),
        ("event", [0, 1], True),
        ("cens", [0, 1], True),
        ("reward", [-2.5, 0.1, 3.0], False),
        ("death_free_success", [0, 1], False),
    ],
)
def test_the_outcome_goes_by_its_name(name, values, harmful):
    found = guess_roles(columns(arm=[0, 1], sex=[0, 1], **{name: values}, site=[1, 2, 3]), "trial.csv")
    assert (found.outcome.name, found.harmful) == (name, harmful)


def asked(made, **named):
    """The lines of what init asks."""
    with pytest.raises(UsageError) as error:
        guess_roles(made, "trial.csv", Named(**named))
    return str(error.value).splitlines()


def test_where_no_name_or_several_say_which_is_the_outcome_it_is_asked_for():
    (line,) = asked(columns(arm=[0, 1], sex=[0, 1], bp=[90.5, 120, 130], site=["a", "b"]))
    assert line == "trial.csv: which column is the outcome? Name it: --outcome COLUMN; it could be bp"
    (line,) = asked(columns(arm=[0, 1], outcome=[1.5, 2, 3], success=[0, 1], bp=[90.5, 120, 130]))
    assert line.endswith("it could be outcome, success, bp")
    found = guess_roles(columns(arm=[0, 1], outcome=[1.5, 2, 3], success=[0, 1]), "trial.csv", Named(outcome="success"))
    assert (found.outcome.name, found.doubt) == ("success", "")
    assert {column.name for column, _ in found.later} == {"outcome"}


def test_where_no_name_or_several_say_which_is_the_treatment_it_is_asked_for():
    made = columns(qsmk=[0, 1], age=list(range(30, 70)), sex=[0, 1], smoker=[1, 2, 3], wt82=list(range(50, 90)))
    first, second = asked(made)
    assert first.startswith("trial.csv: which column is the treatment? Name it: --treatment COLUMN")
    assert first.endswith("it could be qsmk, smoker")
    assert second.startswith("trial.csv: which column is the outcome?")
    (line,) = asked([*columns(treat=[0, 1], rx=[0, 1, 2], success=[0, 1])])
    assert line.endswith("it could be treat, rx, success")
    assert guess_roles(made, "t.csv", Named(treatment=("qsmk",), outcome="wt82")).treatment.name == "qsmk"
    # A whole name says more than a word of one: the arm of a patient is no treatment.
    both = columns(arm=[0, 1], arm_or_hand=["Y", "N", "C"], success=[0, 1])
    assert guess_roles(both, "t.csv").treatment.name == "arm"


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"treatment": ("arn",)}, "--treatment: trial.csv has no column 'arn'; did you mean 'arm'? known: arm, bp"),
        ({"treatment": ("bp",)}, "--treatment: bp has 40 distinct values; a treatment needs 2 to 20"),
        ({"treatment": ("arm", "bp")}, '--treatment: "arm, bp" has 80 combinations; a treatment needs 2 to 20'),
        ({"outcome": "arm", "treatment": ("arm",)}, "--outcome 'arm' is the --treatment already: one column is one"),
        ({"id": "bp"}, "--id: bp does not have a value of its own in each row"),
        ({"time": "bp"}, "--time and --event go together"),
        ({"time": "bp", "event": "cured", "outcome": "relapse"}, "--outcome does not go with --time and --event"),
    ],
)
def test_what_is_named_is_checked(named, said):
    (line,) = asked(columns(arm=[0, 1], bp=list(range(40)), cured=[0, 1], relapse=[0, 1]), **named)
    assert line.startswith(said)


def test_an_outcome_that_looks_like_none_is_taken_with_a_doubt():
    made = columns(arm=[0, 1], time=list(range(40)), status=[0, 1], bp=[1, 2, 3])
    assert "it is a time of follow-up" in guess_roles(made, "trial.csv", Named(outcome="time")).doubt
    with pytest.raises(
        DataError, match=r"^trial.csv: name cannot be the outcome: it is text \(x, y\): make it 0 and 1$"
    ):
        guess_roles(columns(arm=[0, 1], name=["x", "y"]), "trial.csv", Named(outcome="name"))


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (["yes", "no"], "it is text (no, yes): make it 0 and 1"),
        (["poor", "fair", "good"], "it is text (fair, good, ...): make it numbers"),
        ([0], "it has only one value, 0"),
        (["dead"], "it has only one value, dead"),
        ([np.nan], "it has no values"),
    ],
)
def test_no_other_column_is_taken_in_place_of_an_outcome_that_cannot_be_used(values, said):
    made = columns(arm=[0, 1], age=list(range(30, 70)), outcome=values)
    with pytest.raises(DataError, match=f"^trial.csv: outcome is named like the outcome, but {re.escape(said)}$"):
        guess_roles(made, "trial.csv")
    # One that can be used is used, and names of what was known before are none of an outcome.
    assert guess_roles([*made, *columns(death=[0, 1, 1])], "trial.csv").outcome.name == "death"
    before = columns(arm=["a", "b"], prior_response=["no", "yes"], age=list(range(30, 70)))
    with pytest.raises(DataError, match=r"^trial.csv: no column can be the outcome: one needs numbers"):
        guess_roles(before, "trial.csv")


def test_in_a_survival_trial_time_and_event_are_asked_for():
    """The columns of two public ones: neither the time, nor the age, nor the stage is an outcome."""
    lung = columns(arm=[0, 1], time=list(range(5, 300, 7)), status=[0, 1, 1], age=list(range(40, 80)), karno=[60, 80])
    (line,) = asked(lung)
    assert "Name it: --time time --event status where follow-up ended early for some patients" in line
    assert line.endswith("or --outcome COLUMN; it could be status, karno")
    named = columns(arm=[0, 1], days_to_event=list(range(5, 300, 7)), event=[0, 1], stage=[1, 2, 3, 4])
    assert "--time days_to_event --event event" in asked(named)[0]
    # What was measured again later is none, either.
    again = columns(arm=[0, 1], karno=[60, 80], cd40=list(range(40)), cd420=list(range(30, 70)))
    assert asked(again)[0].endswith("it could be karno, cd420")
    # A name of its own beside them says which it is.
    assert guess_roles([*lung, *columns(cured=[0, 1, 1])], "t.csv", Named(outcome="cured")).outcome.name == "cured"


def test_the_horizon_is_the_latest_time_to_which_every_arm_is_followed():
    arm = summarise(pd.Series([0] * 100 + [1] * 300), "arm")
    time = summarise(pd.Series([*range(1, 101), *(2 * i for i in range(1, 301))]), "time")
    event = summarise(pd.Series(np.arange(400) % 2), "event")
    followed = guess_roles(
        [arm, time, event, *columns(sex=[0, 1])], "t.csv", Named(time="time", event="event")
    ).followed
    # Of the first arm ten patients have 91 or more, of the second all of the last 30 have 542 or more.
    assert (followed.horizon, followed.at_risk) == (91.0, (10, 255))
    assert [round_down(value) for value in (1231.0, 0.57, 99.9, 1e-5, 0.0)] == [1200.0, 0.57, 99.0, 1e-5, 0.0]


@pytest.mark.parametrize(
    ("times", "events", "said"),
    [
        ([-1, 5], [0, 1], "trial.csv: time must be times, numbers >= 0, got -1"),
        (["soon", "later"], [0, 1], "trial.csv: time must be times, numbers >= 0, got later"),
        ([1, 2], [1, 2], "status must be 1 for the event and 0 where follow-up ended before, got 1, 2: make them 0"),
        ([1, 2], ["dead", "alive"], "0 where follow-up ended before, got alive, dead: make them 0 and 1"),
    ],
)
def test_times_and_events_that_cannot_be_any_are_refused(times, events, said):
    with pytest.raises(DataError) as error:
        guess_roles(columns(arm=[0, 1], time=times, status=events), "trial.csv", Named(time="time", event="status"))
    assert said in str(error.value)


def test_an_outcome_that_the_treatment_decides_is_refused():
    arms = pd.Series(np.arange(N) % 2)
    made = [summarise(arms, "arm"), summarise(1 - arms, "outcome"), *columns(age=list(range(30, 70)))]
    with pytest.raises(
        DataError, match="outcome is named like the outcome, but it reveals the treatment: arm decides it"
    ):
        guess_roles(made, "trial.csv")


def test_ids_are_distinct_and_named_so_or_count_the_rows():
    distinct = np.arange(N)
    assert roles(patient=distinct).id.name == "patient"
    assert roles(covid=[0, 1]).id is None
    assert roles(income=distinct).id is None  # shuffled
    assert roles(weight=distinct + 0.5).id is None
    assert roles(who=[f"p{i}" for i in range(N)]).id.name == "who"
    counting = summarise(pd.Series(distinct), "n")
    assert guess_roles([counting, *columns(arm=[0, 1], success=[0, 1])], "trial.csv").id is counting


@pytest.mark.parametrize(
    "name",
    [
        "days",
        "time_to_event",
        "survival",
        "offtrt",
        "los",
        "post_bp",
        "adverse_event",
        "Follow-up BP",
        "toxicity",
        "loss",
        "rfstime",
        "dtime",
        "pfs",
        "fustat",
        "vital_status",
    ],
)
def test_what_sounds_later_is_left_out(name):
    assert name in later(**{name: [1, 2, 3]})


@pytest.mark.parametrize(
    "name",
    [
        "age",
        "baseline_days",
        "prior_treatment",
        "pretreatment_bp",
        "days since diagnosis",
        "history_of_events",
        "drugs",
        "marital_status",
        "age_months",
        "diagtime",
    ],
)
def test_what_was_known_before_is_not(name):
    found = roles(**{name: [1, 2, 3]})
    assert name in [column.name for column in found.rest]


def test_later_measurements_are_left_out():
    found = later(
        cd40=range(99),
        cd420=range(98),
        cd80=range(97),
        cd820=range(96),
        bp_1=range(95),
        bp_2=range(94),
        x1=[0, 1],
        x2=[0, 1],
    )
    assert found == {
        "cd420": "probably a later measurement of cd40",
        "cd820": "probably a later measurement of cd80",
    }


def test_a_larger_number_behind_a_name_is_no_evidence_by_itself():
    before = np.random.default_rng(3).normal(size=N).round(3)
    noise = np.random.default_rng(4).normal(size=N).round(3)
    arm = np.arange(N) % 2
    made = {"arm": arm, "re74": before, "re75": before + noise, "re78": before - noise, "success": (noise > 0) * 1}
    frame = pd.DataFrame(made)
    summed = [summarise(frame[name], name) for name in frame]
    assert guess_roles(summed, "t.csv").later == ()
    # The outcome's own name with a larger number is.
    chosen = guess_roles(summed[:4], "t.csv", Named(outcome="re75"))
    assert {c.name: why for c, why in chosen.later} == {"re78": "named like the outcome re75, with a larger number"}
    # And so is a difference that the treatment made, where allocation looks randomised.
    treated = [*summed[:2], summarise(frame["re75"] + arm, "re75"), *summed[3:]]
    assert [(c.name, why) for c, why in guess_roles(treated, "t.csv").later] == [
        ("re75", "differs between the treatments, given re74 (p < 0.001)")
    ]
    uneven = [summarise(pd.Series((np.arange(N) % 3 > 0) * 1), "arm"), *treated[1:]]
    assert guess_roles(uneven, "t.csv").later == ()


def test_few_differences_arise_where_treatment_changed_nothing():
    """The F test is exact for normal values: at 1 in 1,000, more than 3 of 400 tables would be a defect."""
    rng = np.random.default_rng(5)
    arm, success = summarise(pd.Series(np.arange(N) % 4), "arm"), summarise(pd.Series(np.arange(N) // 4 % 2), "success")
    found = 0
    for _ in range(400):
        before = rng.normal(size=N)
        pair = [summarise(pd.Series(v), name) for name, v in (("bp_1", before), ("bp_2", before + rng.normal(size=N)))]
        found += bool(known_later([*pair], arm, success, randomised=True))
    assert found <= 3


@pytest.mark.parametrize("name", ["stroke_14d", "pain_week4", "weight_6m", "visit 30 days"])
def test_a_number_of_days_or_weeks_is(name):
    assert name in later(**{name: [1, 2, 3]})


def test_a_level_that_excludes_a_randomised_treatment_reveals_it():
    arms = np.arange(N) % 4
    dose = np.where(arms < 2, "none", np.where(np.arange(N) % 8 < 4, "low", "high"))
    made = [summarise(pd.Series(v), n) for n, v in (("arm", arms), ("dose", dose), ("success", arms * 0))]
    made[2] = columns(success=[0, 1])[0]
    (found,) = guess_roles(made, "t.csv").later
    assert found[1].startswith("reveals the treatment, which was randomised: nobody with one of its values got")


def test_gaps_that_go_with_the_outcome_are_evidence():
    rng = np.random.default_rng(6)
    death = rng.integers(0, 2, N)
    year = np.where(death == 1, rng.integers(80, 93, N), np.nan)
    gone = rng.random(N) < 0.1
    weight, change = (np.where(gone, np.nan, rng.normal(size=N)) for _ in range(2))
    made = {"arm": np.arange(N) % 2, "death": death, "yrdth": year, "wt82": weight, "gain": change}
    summed = [summarise(pd.Series(value), name) for name, value in made.items()]
    by_death = {c.name: why for c, why in guess_roles(summed, "t.csv", Named(outcome="death")).later}
    assert by_death == {"yrdth": "missing by what the outcome death was"}
    by_gain = {c.name: why for c, why in guess_roles(summed, "t.csv", Named(outcome="gain")).later}
    assert by_gain == {
        "death": "named like an outcome or a time after treatment",
        "yrdth": "missing by what death was",
        "wt82": "missing in the same rows as the outcome gain",
    }


def test_columns_that_make_the_treatment_together_are_named_by_their_yes():
    aspirin, heparin = (np.array(["N", "Y"])[np.arange(N) // 2**place % 2] for place in range(2))
    made = [summarise(pd.Series(v), n) for n, v in (("aspirin", aspirin), ("heparin", heparin))]
    found = guess_roles([*made, *columns(success=[0, 1])], "t.csv", Named(treatment=("aspirin", "heparin")))
    assert dict(treatment_names(found)) == {
        "N, N": "none",
        "N, Y": "heparin",
        "Y, N": "aspirin",
        "Y, Y": "aspirin + heparin",
    }
    assert next(iter(treatment_names(found))) == ("N, N", "none")
    dose = summarise(pd.Series(np.array(["0", "5", "10"])[np.arange(N) % 3]), "dose")
    found = guess_roles([made[0], dose, *columns(success=[0, 1])], "t.csv", Named(treatment=("aspirin", "dose")))
    assert ("Y, 10", "aspirin Y, dose 10") in treatment_names(found)


@given(st.lists(st.tuples(*[st.sampled_from([0.0, 1.0, 2.5, "a", "b c", ""])] * 3), min_size=2, max_size=12))
def test_joined_columns_are_the_same_as_in_the_log(rows):
    frame = pd.DataFrame(rows, columns=["x", "y", "z"]).astype(str)
    found = summarise_joined([summarise(frame[name], name) for name in frame])
    texts = joined([frame[name] for name in frame])
    expected = [None if code < 0 else found.values[code] for code in found.codes]
    assert expected == texts.tolist()
    assert found.name == "x, y, z"


def test_a_column_that_tells_gaps_in_a_later_one_is_left_out():
    cd496 = np.where(np.arange(N) % 5 == 0, np.nan, np.arange(N))
    told = [summarise(pd.Series(cd496), "cd496"), summarise(pd.Series(np.isnan(cd496)), "r")]
    found = guess_roles([*columns(arm=[0, 1], success=[0, 1], cd40=range(50), sex=[0, 1]), *told], "trial.csv")
    assert {column.name for column, _ in found.later} == {"cd496", "r"}


@given(st.lists(st.floats(-1e9, 1e9, allow_nan=False), min_size=13, max_size=60, unique=True))
def test_cuts_are_rising_and_leave_no_end_empty(values):
    cuts = round_cuts(summarise(pd.Series(values), "x"))
    assert 1 <= len(cuts) <= 3
    assert list(cuts) == sorted(set(cuts))
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
    age = summarise(pd.Series(rng.integers(20, 60, 4_000)), "age")  # quartiles near 30, 40, 50
    assert round_cuts(age) == (30, 40, 50)
    zeros = summarise(pd.Series([0] * 900 + list(range(100, 200))), "days")
    assert len(round_cuts(zeros)) == 3
    assert min(round_cuts(zeros)) > 0


@given(st.lists(st.floats(-1e12, 1e12, allow_nan=False), min_size=2, unique=True))
def test_a_round_range_holds_all_values_and_is_not_much_wider(values):
    low, high = round_range(summarise(pd.Series(values), "x"))
    assert low <= min(values) <= max(values) <= high
    spread = max(values) - min(values)
    assert high - low <= max(3 * spread * (1 + 1e-9), 1.0 if min(values) >= 0 and max(values) <= 1 else 0)


def test_levels_or_cuts_or_neither():
    found = guess_features(
        columns(few=[1, 2, 3], many=range(50), words=["a", "b"], names=[f"n{i}" for i in range(50)], same=[1])
    )
    declared = {candidate.binning.name: candidate.binning for candidate in found.chosen}
    assert declared["few"].levels == (1, 2, 3)
    assert declared["words"].levels == ("a", "b")
    assert len(declared["many"].cuts) == 3
    assert found.unusable == {
        "names": "50 distinct values, not all of them usual numbers",
        "same": "the same value in all rows",
    }


def test_missing_values_are_a_level_of_their_own():
    gaps = [summarise(pd.Series(["1", "", "2", "NA"] * 100), "few")]
    gaps += [summarise(pd.Series([*np.arange(300.0), *[np.nan] * 100]), "many")]
    few, many = guess_features(gaps).chosen
    assert (few.binning.levels, few.counts) == ((1, 2, "NA"), [100, 100, 200])
    assert many.binning.missing and many.binning.feature.levels[-1] == "NA"
    assert many.counts[-1] == 100 and sum(many.counts) == 400
    assert np.array_equal(many.codes, many.binning.codes(pd.Series([*np.arange(300.0), *[np.nan] * 100])))


def test_what_numbers_the_rows_is_no_feature():
    numbered = [summarise(pd.Series(np.arange(N) * 3 + 7), name) for name in ("rownames", "n", "Unnamed: 0")]
    found = guess_features([*numbered, *columns(age=range(40), rownames=[f"r{i}" for i in range(N)])])
    assert [candidate.binning.name for candidate in found.chosen] == ["age"]
    assert set(found.unusable.values()) == {"numbers the rows", "an id, with a value for each row"}
    # The patients' own id is the id, and not the number of the row before it.
    made = [*numbered, summarise(pd.Series(np.random.default_rng(0).permutation(N)), "patient")]
    roles = guess_roles([*columns(arm=[0, 1], success=[0, 1]), *reversed(made)], "t.csv")
    assert roles.id.name == "patient"


def test_the_domain_stays_small_and_takes_what_is_new_first():
    rng = np.random.default_rng(1)
    base = rng.integers(0, 2, (N, 14))
    made = {f"f{i}": base[:, i] for i in range(14)}
    # Nearly the same as f0: 5 of 400 differ.
    made["echo"] = np.where(np.arange(N) < 5, 1 - base[:, 0], base[:, 0])
    made["rare"] = (np.arange(N) % 50 == 0).astype(int)
    found = guess_features([summarise(pd.Series(value), name) for name, value in made.items()])
    chosen = [candidate.binning.name for candidate in found.chosen]
    # 2^12 = 4,096 records is the most below 5,000.
    assert found.n_records == 2**12
    assert "rare" not in chosen
    assert not {"echo", "f0"} <= set(chosen)
    assert len(chosen) + len(found.further) == 16


def test_a_column_that_another_decides_is_left_out_but_not_both():
    strat = np.random.default_rng(2).integers(0, 3, N)
    coarse, same = (strat > 0).astype(int), np.array(["x", "y", "z"])[strat]
    found = guess_features(
        [summarise(pd.Series(v), n) for n, v in (("str2", coarse), ("strat", strat), ("copy", same))]
    )
    assert [candidate.binning.name for candidate in found.chosen] == ["strat"]
    assert found.unusable == {"str2": "strat decides it", "copy": "strat decides it"}


def test_few_rows_decide_nothing():
    first, second = (summarise(pd.Series(values), "x") for values in ([0, 1, 2, 3] * 2, [0, 1, 0, 1] * 2))
    assert not first.decides(second)
    assert math.prod(candidate.size for candidate in guess_features([first, second]).chosen) == 8


def test_repeated_ids_are_no_feature():
    found = guess_features(columns(**{"patient id": range(40), "age": range(40), "covid": range(40)}))
    assert found.unusable == {"patient id": "named like an id"}
