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
from policysim.logs.guess_columns import summarise
from policysim.logs.guess_features import guess_features, round_cuts, round_range
from policysim.logs.guess_roles import guess_roles, reference_first

N = 400


def columns(**values):
    """Summaries of columns; a scalar or short list is repeated."""
    rng = np.random.default_rng(0)
    made = {name: rng.permutation(np.resize(np.asarray(value), N)) for name, value in values.items()}
    return [summarise(pd.Series(value), name) for name, value in made.items()]


def roles(**values):
    return guess_roles(columns(**{"arm": [0, 1], "success": [0, 1], **values}), "trial.csv")


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
    assert (found.treatment.name, found.also_treatment) == ("arms", ("treatment",))
    assert {column.name for column, _ in found.later} == {"treatment"}


def test_a_control_comes_first():
    arm = summarise(pd.Series(["drug A", "drug B", "Placebo pill"] * 5), "arm")
    assert [arm.values[place] for place in reference_first(arm)] == ["Placebo pill", "drug A", "drug B"]


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
    assert (found.outcome.name, found.harmful, found.candidates) == (name, harmful, ())


def test_outcomes_of_0_and_1_come_before_other_numbers_and_nothing_is_guessed():
    assert roles(outcome=[1.5, 2, 3], success=[0, 1]).outcome.name == "success"
    found = guess_roles(columns(arm=[0, 1], sex=[0, 1], bp=[90.5, 120, 130], site=["a", "b"]), "trial.csv")
    assert found.outcome is None
    assert [column.name for column in found.candidates] == ["bp"]


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
    before = columns(arm=[0, 1], prior_response=["no", "yes"], age=list(range(30, 70)))
    with pytest.raises(DataError, match=r"^trial.csv: no column can be the outcome: one needs numbers"):
        guess_roles(before, "trial.csv")


def test_in_a_survival_trial_no_outcome_is_guessed():
    """The columns of two public ones: neither the time, nor the age, nor the stage is an outcome."""
    lung = columns(arm=[0, 1], time=list(range(5, 300, 7)), status=[1, 2, 2], age=list(range(40, 80)), karno=[60, 80])
    found = guess_roles(lung, "lung.csv")
    assert found.outcome is None
    assert [column.name for column in found.candidates] == ["status", "karno"]
    # What was measured again later is none, either.
    again = columns(arm=[0, 1], karno=[60, 80], cd40=list(range(40)), cd420=list(range(30, 70)))
    assert [column.name for column in guess_roles(again, "trial.csv").candidates] == ["karno", "cd420"]
    named = columns(arm=[0, 1], days_to_event=list(range(5, 300, 7)), event=[0, 1], stage=[1, 2, 3, 4])
    assert guess_roles(named, "trial.csv").outcome.name == "event"


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
        "bp_2": "probably a later measurement of bp_1",
    }


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


def test_missing_values_are_a_level_of_their_own_or_in_the_way():
    gaps = [summarise(pd.Series(["1", "", "2", "NA"] * 100), "few")]
    gaps += [summarise(pd.Series([*np.arange(300.0), *[np.nan] * 100]), "many")]
    found = guess_features(gaps)
    assert found.chosen[0].binning.levels == (1, 2, "NA")
    assert found.chosen[0].counts == [100, 100, 200]
    assert found.unusable == {"many": "missing in 100 rows: fill these first"}


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
