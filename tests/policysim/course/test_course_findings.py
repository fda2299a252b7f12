"""Which way of spending a total is best, and what is said of it."""

import math

import pandas as pd
import pytest
from small_studies import SCENARIO, write_small_study

import policysim as ps
from policysim.course.course_findings import (
    answer,
    best_mechanisms,
    privacy_words,
    ways,
    ways_words,
)
from policysim.course.days import DaysQuestion

STUDY = ps.load_study("covid")
COLUMNS = ["policy", "group", "horizon", "total_epsilon", "total_spent", "value", "benefit_kept", "most_kept"]


def table(*rows):
    found = pd.DataFrame([(name, "all", 7, *rest) for name, *rest in rows], columns=COLUMNS)
    return found.assign(hides=["course" if spent < math.inf else "nothing" for spent in found["total_spent"]])


COMPARED = table(
    ("best-schedule", 1.0, 0.0, 0.5, 0.5, 0.704),
    ("best-schedule", 5.0, 0.0, 0.5, 0.5, 0.99),
    ("plan-once", 1.0, 1.0, 0.6, 0.6, 0.704),
    ("plan-once", 5.0, 5.0, 0.55, 0.55, 0.99),
    ("exponential", 1.0, 1.0, 0.2, 0.2, 0.704),
    ("exponential", 5.0, 5.0, 0.599, 0.599, 0.99),
    ("greedy", 1.0, math.inf, 1.0, 1.0, 0.704),
    ("greedy", 5.0, math.inf, 1.0, 1.0, 0.99),
)


def test_a_larger_total_may_do_what_a_smaller_one_allows():
    found = ways(COMPARED).set_index(["total_epsilon", "way"])
    assert found["benefit_kept"].to_dict() == {
        (1.0, "best-schedule"): 0.5,
        (1.0, "plan-once"): 0.6,
        (1.0, "day by day"): 0.2,
        (5.0, "best-schedule"): 0.5,
        (5.0, "plan-once"): 0.6,  # what it keeps with 1 of the 5
        (5.0, "day by day"): 0.599,
    }
    assert found.loc[found["best"], "policy"].tolist() == ["plan-once", "plan-once"]
    assert set(found["hides"]) == {"course"}
    # greedy spends more than any total, and is no mechanism within it.
    assert "greedy" not in set(found["policy"])
    assert best_mechanisms(COMPARED)["benefit_kept"].tolist() == [0.6, 0.6]


def test_of_equal_ways_the_plainest_is_the_best():
    equal = table(
        ("exponential", 1.0, 1.0, 2.0, 0.5, 0.7),
        ("plan-once", 1.0, 1.0, 2.0 - 1e-12, 0.5, 0.7),
        ("best-schedule", 1.0, 0.0, 1.9, 0.4, 0.7),
    )
    assert best_mechanisms(equal)["policy"].tolist() == ["plan-once"]


def test_the_answer_says_what_is_kept_rounded_down_and_what_cannot_be_rounded_up():
    question = DaysQuestion(7, (1.0, 5.0), 0.0, length_public=False)
    first, about = answer(STUDY, question, COMPARED)
    assert first.replace("\xa0", " ") == (
        "Over 7 days, within a total ε of 1, 60 % of the benefit can be kept (by plan-once), and no mechanism "
        "that gives what it publishes keeps more than 71 %; within 5, 60 % (plan-once) and no more than 99 %. Compared "
        "are best-schedule, plan-once, exponential, greedy."
    )
    assert about.startswith("plan-once chooses one of several schedules")
    # Where nothing is proved, nothing is said of other mechanisms.
    (sentence,) = answer(STUDY, question, COMPARED[COMPARED["policy"] == "exponential"].assign(most_kept=math.nan))
    assert "no mechanism" not in sentence and "no more" not in sentence


@pytest.mark.parametrize("kept", [math.nan])
def test_without_a_benefit_there_are_no_shares(kept):
    nothing = COMPARED.assign(benefit_kept=kept, most_kept=kept)
    assert "–" in answer(STUDY, DaysQuestion(7, (1.0, 5.0), 0.0, length_public=False), nothing)[0]


def test_what_is_said_is_true_within_classes_too():
    question = DaysQuestion(7, (1.0,), 0.0, length_public=False)
    fixed = [name for name in STUDY.space.names if name not in STUDY.scenario.transient]
    hidden = [name for name in STUDY.space.names if name not in ("sex", "age")]
    within = STUDY.with_choices(sensitive=hidden)
    words = [ways_words(within)[name] for name in ("schedule_words", "once_words", "limit_words")]
    assert all("patients who agree in age and sex" in said.lower() for said in words)
    said = privacy_words(within, question)
    assert "Hidden: all of a patient's record but age and sex, on all days" in said
    assert "of any two courses of a patient's records that agree in what is public, any set" in said
    assert "Assumed public: age, sex, the domain" in said
    # Of many public features the sentences name none.
    many = STUDY.with_choices(sensitive=STUDY.scenario.transient)
    assert len(fixed) > 4 and "who agree in all that is public" in ways_words(many)["schedule_words"]
    # And under any-record nobody is public.
    assert "gives everybody the same treatment on a day" in ways_words(STUDY)["schedule_words"]
    assert (
        "public." in ways_words(STUDY)["once_words"]
        and "agree" not in ways_words(STUDY)["once_words"] + ways_words(STUDY)["limit_words"]
    )
    assert "Hidden: the whole record of a patient on all days" in privacy_words(STUDY, question)


def test_patients_who_all_begin_alike_are_said_to_leave_nothing_to_choose_once(tmp_path):
    said = "all who are hidden among each other begin alike: choosing once cannot react"
    sure = SCENARIO.replace("infected = 0.3, smoker = 0.2, fever = 0.05, cough = 0.1", "infected = 1, smoker = 0")
    sure = sure.replace("fever = 0.6, cough = 0.5", "fever = 1, cough = 1").replace("[0.7, 0.3]", "[0.5, 0.5]")
    study = ps.load_study(write_small_study(tmp_path, scenario=sure))
    # Young or old: two records, or one in each class.
    assert said not in ways_words(study)["once_words"] and said not in ways_words(STUDY)["once_words"]
    within = study.with_choices(sensitive=[name for name in study.scenario.space.names if name != "age"])
    assert said in ways_words(within)["once_words"]
