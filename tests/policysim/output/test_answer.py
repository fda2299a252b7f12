"""The answer in three sentences: right in every case."""

import math
import re

import pandas as pd
import pytest
from policysim.decision.findings import BreakEven, Findings, ForAll, PolicyRow
from policysim.decision.summary import answer
from report_pages import readable

from policysim.study.gain import Gain

NAN, INF = math.nan, math.inf
GAIN = Gain(best=-1.0, fixed=-1.1, by_lot=-1.2, rounding=1e-14)
GOOD = ("optimal", 0.301, 0.0003, 0.0, 3.0)
FAIR = ("randomized-response", -0.18, 0.00076, 1.3, 3.4)
POOR = ("exponential", -0.65, 0.0011, 40.0, 3900.0)
FIXED = ("best-fixed", 0.0, 0.0000016, NAN, NAN)
NONE = "no mechanism that gives what it publishes keeps more"
BEYOND = "of what choosing for each patient is worth beyond one treatment for all"
PROVEN = ("optimal", "optimal-unbeatable")

# One treatment for all, as FIXED has it.
FOR_ALL = (
    "At ε = 1 the safest choice is to give everybody a3: it costs 0.16 more deaths per 100,000 patients than the best "
    f"treatment for each, and keeps 0 % {BEYOND}."
)


def said(*rows, deaths=True, gain=GAIN, unused=(), used=True, most="the optimum", fixed=FIXED, safest=None, even=None):
    """The sentences for policies, each (name, benefit kept, extra deaths, ε to beat one for all, ε to keep 80 %).

    `most`: what none is proven to keep more than; by default what the optimum keeps, or its upper bound.
    """
    listed = [
        PolicyRow(name, kept, extra, 1.0, better, keeps, 0.7) for name, kept, extra, better, keeps in (*rows, fixed)
    ]
    findings = Findings(
        1.0, {"untreated": 0.01} if deaths else {}, "a3", listed, 0.73, None, 0.1, {}, None, gain, unused, used,
        safest or ForAll("a3", fixed[2], 0.0), even,
    )  # fmt: skip
    table = pd.DataFrame(
        [
            {"policy": row.policy, "epsilon": 1.0, "group": "all", "benefit_kept": row.benefit_kept, "loss": 0.07}
            | {"value": 0.0 if math.isnan(row.benefit_kept) else row.benefit_kept, "extra_deaths": row.extra_deaths}
            | ({"most_kept": row.benefit_kept if most == "the optimum" else most} if row.policy in PROVEN else {})
            for row in listed
        ]
    )
    return [readable(sentence) for sentence in answer(findings, table)]


def test_the_safest_choice_the_most_useful_one_and_what_lies_between():
    assert said(POOR, FAIR, GOOD, even=BreakEven("optimal", 199.96, 100.0)) == [
        FOR_ALL,
        f"The most useful is optimal, which keeps 30 % and costs 30 more; {NONE}.",
        "Between the two, optimal is worth more than giving everybody a3 while a death weighs less than 199 (100 is "
        "assumed); keeping 80 % takes ε = 3.0 with optimal, 3.4 with randomized-response, and up to 3900 with "
        "exponential.",
    ]


def test_a_mechanism_that_costs_no_more_deaths_and_keeps_more_is_the_safest():
    safe = ("optimal-safe", 0.166, FIXED[2], 3.0, 7.0)
    first, second, third = said(FAIR, safe, GOOD)
    assert first == FOR_ALL.replace("to give everybody a3", "optimal-safe").replace("keeps 0 %", "keeps 17 %")
    assert second.startswith("The most useful is optimal, which keeps 30 %")
    assert third == (
        "Keeping 80 % takes ε = 3.0 with optimal, or 3.4 with randomized-response; 7.0 with no more deaths than one "
        "treatment for all (optimal-safe)."
    )
    # As safe and no more useful than one treatment for all, which hides everything.
    assert said(FAIR, ("optimal-safe", 1e-12, FIXED[2], 3.0, 7.0), GOOD)[0] == FOR_ALL


def test_where_the_safest_is_the_most_useful_too_it_is_named_once():
    first, second, third = said(FAIR, ("optimal", 0.998, 0.0000014, 0.0, 2.9))
    assert first == (
        "At ε = 1 the safest choice is also the most useful, optimal: it costs 0.14 more deaths per 100,000 patients "
        f"than the best treatment for each, and keeps 100 % {BEYOND}; {NONE}."
    )
    assert second == "One treatment for all, a3, costs 0.16 more and keeps 0 %."
    assert third.startswith("Keeping 80 % takes ε")


def test_the_safest_treatment_for_all_need_not_be_the_best_one():
    first, second, _ = said(GOOD, safest=ForAll("a1", -0.0001, -0.25), even=BreakEven("optimal", 150.0, 100.0))
    assert first.startswith("At ε = 1 the safest choice is to give everybody a1: it costs 10 fewer deaths")
    assert first.endswith(f"and keeps −25 % {BEYOND}.")
    assert second.startswith("The most useful is optimal")


def test_the_optimum_comes_first_where_another_is_as_good_but_for_rounding():
    _, second, _ = said(("randomized-features", 1e-16, 0.0001, 0.0, 3.0), ("optimal", 0.0, 0.0001, 0.0, 2.9))
    assert second == f"Even optimal keeps 0 % and costs 10 more; {NONE}."


def test_where_all_are_worse_than_one_for_all_it_says_so_and_from_where_not():
    first, second, last = said(POOR, FAIR)
    assert first == FOR_ALL
    assert second == (
        "None of the mechanisms compared is more useful than one treatment for all: the best, randomized-response, "
        "keeps −18 % and costs 76 more; what no mechanism that gives what it publishes exceeds was not computed."
    )
    assert last == (
        "Keeping 80 % takes ε = 3.4 with randomized-response, or 3900 with exponential; randomized-response is worth "
        "more than one treatment for all from ε = 1.3 on."
    )


def test_where_the_limit_is_only_bounded_the_bound_is_said():
    unbeatable = ("optimal-unbeatable", 0.45, NAN, NAN, NAN)
    _, second, _ = said(("exponential", 0.2, 0.0001, 0.5, 3.0), unbeatable)
    assert second == (f"The only mechanism compared, exponential, keeps 20 % and costs 10 more; {NONE} than 45 %.")


def test_the_optimum_is_the_best_found_where_the_proof_leaves_room():
    first, *_ = said(FAIR, GOOD, most=0.4401, deaths=False)
    found = "At ε = 1 the best mechanism found by linear programming, optimal, keeps 30 %"
    assert first == f"{found} {BEYOND}, and {NONE} than 45 %."
    assert said(FAIR, GOOD, most=0.4401)[1] == (
        "The most useful is optimal, the best mechanism found by linear programming, which keeps 30 % and costs 30 "
        f"more; {NONE} than 45 %."
    )
    # As good as the proof to its rounding, and not to the digits that are printed.
    assert said(FAIR, GOOD, most=0.301 + 1e-9)[1].endswith(f"; {NONE}.")
    assert said(FAIR, GOOD, most=0.3012)[1].endswith(f"; {NONE} than 31 %.")


@pytest.mark.parametrize("most", [NAN, 0.9999, 1.0])
def test_where_nothing_is_proven_nothing_is_called_impossible(most):
    for deaths in (False, True):
        sentences = said(FAIR, GOOD, most=most, deaths=deaths)
        assert "the best mechanism found by linear programming" in sentences[deaths]
        assert sentences[deaths].endswith(f"; that {NONE} is not proven.")
        assert not any(claim in " ".join(sentences) for claim in ("publishes keeps more than", "No mechanism"))
    _, bound = said(("optimal-achievable", 0.3, NAN, NAN, NAN), most=most)
    assert bound == f"At ε = 1 some policy keeps 30 % {BEYOND}; that {NONE} is not proven."


def test_another_mechanism_that_keeps_the_most_is_said_to():
    unbeatable = ("optimal-unbeatable", 0.45, NAN, NAN, NAN)
    assert said(("exponential", 0.45, 0.0001, 0.5, 3.0), unbeatable, deaths=False)[0].endswith(f"and {NONE}.")


def test_where_a_value_is_known_to_be_achievable_it_is_said_too():
    bounds = [("optimal-achievable", 0.3, NAN, NAN, NAN), ("optimal-unbeatable", 0.45, NAN, NAN, NAN)]
    _, second, *_ = said(("exponential", 0.2, 0.0001, 0.5, 3.0), *bounds)
    assert second.endswith(f"costs 10 more; some policy keeps 30 %, and {NONE} than 45 %.")
    assert said(*bounds)[1] == f"At ε = 1 some policy keeps 30 % {BEYOND}, and {NONE} than 45 %."


def test_of_those_that_are_equally_good_the_first_to_beat_one_for_all_is_named():
    last = said(("exponential", -0.2, 0.1, 9.0, 3.0), ("randomized-response", -0.2, 0.1, 2.0, 3.4))[-1]
    assert last.endswith("; randomized-response is worth more than one treatment for all from ε = 2.0 on.")


@pytest.mark.parametrize(("keeps", "first"), [(2.0, "optimal"), (1.9, "randomized-features")])
def test_of_those_that_need_the_same_the_optimum_is_first(keeps, first):
    last = said(("optimal", 0.3, 0.0, 0.0, 2.0), ("randomized-features", 0.2, 0.0, 0.0, keeps))[-1]
    assert f" with {first}, or " in last


def test_of_several_without_the_optimum_the_best_is_the_best_compared():
    rows = FAIR, ("exponential", 0.2, 0.0001, 0.5, 3.0)
    assert said(*rows)[1].startswith("The most useful of the mechanisms compared is exponential, which keeps 20 %")
    assert said(*rows, deaths=False)[0].startswith(
        "At ε = 1 the best of the mechanisms compared, exponential, keeps 20 %"
    )


def test_one_mechanism_that_is_worse_has_no_others_to_be_best_of():
    only = ("exponential", -0.65, 0.0011, INF, INF)
    assert said(only)[1].startswith(
        "The only mechanism compared is no more useful than one treatment for all: exponential keeps −65 % and costs"
    )
    first, second, third = said(only, deaths=False)
    assert first.startswith(
        "At ε = 1 the only mechanism compared is worth less than one treatment for all: exponential"
    )
    assert "the next" not in second
    assert third == "No ε lets a mechanism compared keep 80 %."


def test_without_private_mechanisms_there_is_one_sentence():
    assert said() == ["No private mechanism was compared: one treatment for all costs no privacy at all."]


def test_where_choosing_gains_nothing_privacy_costs_nothing():
    (only,) = said(("optimal", NAN, 0.0, NAN, NAN), gain=Gain(best=-1.1, fixed=-1.1, by_lot=-1.2, rounding=1e-14))
    assert only.startswith("One treatment for all, “a3”, is as good as the best for each patient here")


def test_without_deaths_the_cost_is_in_utility():
    second = said(GOOD, FAIR, deaths=False)[1]
    assert "it costs 0.070 in utility per patient; one treatment for all, which needs no privacy, costs 0.070" in second
    assert "deaths" not in second


@pytest.mark.parametrize(
    ("extra", "words"), [(-0.0002, "costs 20 fewer deaths per 100,000"), (0.0, "costs no more deaths per 10,000,000")]
)
def test_deaths_may_also_be_fewer_or_no_more(extra, words):
    assert words in said(("optimal", 0.3, extra, 0.0, 2.9))[0]


def test_where_deaths_of_a_mechanism_are_not_known_the_cost_is_in_utility():
    first, second, _ = said(("optimal", 0.3, NAN, 0.0, 2.9))
    assert first == f"At ε = 1 the best mechanism, optimal, keeps 30 % {BEYOND}, and {NONE}."
    assert second.startswith("Compared with the best treatment for each patient")


@pytest.mark.parametrize("apart", [5e-10, 1e-6])
def test_deaths_that_nobody_could_count_make_no_choice_safer(apart):
    first, *_ = said(("optimal", 0.3, FIXED[2] + apart, 0.0, 2.9))
    assert first.startswith("At ε = 1 the safest choice is also the most useful") == (apart < 1e-7)


def test_where_one_for_all_saves_lives_the_best_is_said_to_save_fewer():
    first, second, _ = said(("optimal", 0.3, -0.0001, 0.0, 2.9), fixed=("best-fixed", 0.0, -0.0003, NAN, NAN))
    assert "it costs 30 fewer deaths per 100,000 patients than the best treatment for each" in first
    assert second == f"The most useful is optimal, which keeps 30 % and costs 10 fewer; {NONE}."


def test_of_a_gain_too_small_for_shares_the_utilities_are_said():
    gain = Gain(best=-1.0, fixed=-1.0002, by_lot=-2.0, rounding=1e-14)
    first, second = said(("exponential", NAN, 0.0001, 3.0, NAN), ("optimal", NAN, 0.0002, 1.0, NAN), gain=gain)
    assert first.startswith(
        "One treatment for all, “a3”, is nearly as good as the best for each patient here: it loses"
    )
    assert "it loses 0.00020 in utility per patient, where choosing by lot loses 1.0," in first
    assert second.startswith("At ε = 1 the best of the mechanisms compared, ")
    assert "%" not in first + second
    assert "deaths per 100,000 patients than the best treatment for each, where one treatment for all costs" in second


def test_of_what_the_model_does_not_use_no_price_is_said():
    assert said(GOOD, unused=("penicillin_allergy",), used=False) == [
        "The model does not use penicillin allergy to tell treatments apart, so nothing can be said about what hiding "
        "it costs."
    ]
    # Where something else is hidden too, that has its price.
    *rest, last = said(GOOD, FAIR, unused=("penicillin_allergy",))
    assert rest == said(GOOD, FAIR)
    assert last.startswith("The model does not use penicillin allergy to tell")


def test_every_number_of_the_answer_is_one_of_the_run(full):
    """Nothing is typed: what is left without the marked numbers names no number but the size of the population."""
    section = full.page.partition('<section class="answer"')[2].partition("</section>")[0]
    rest = readable(re.sub(r"<data .*?</data>", "", section.partition(">")[2]))
    assert [word for word in rest.split() if any(map(str.isdigit, word))] in ([], ["100,000"], ["1,000,000"])
