"""Sentences of a page that random studies showed to be wrong, or wrongly said."""

import math
import re
from dataclasses import replace

import pandas as pd
import pytest
from report_pages import readable
from small_studies import SCENARIO, STUDY, write_small_study

import policysim as ps
from policies.adjacency import Listed
from policies.problem import DecisionProblem
from policysim.decision.beliefs import BeliefRange, Beliefs
from policysim.decision.brief import who_dies
from policysim.decision.decision_drawings import groups_drawing, icons_drawing
from policysim.decision.decision_question import DecisionQuestion
from policysim.decision.findings import PolicyRow
from policysim.decision.headings import headings
from policysim.decision.over_epsilon import flat_sentence
from policysim.decision.redraws import Robustness, how_drawn
from policysim.question.protocol import SILENT


def answer(folder, study=STUDY, scenario=SCENARIO, **changes):
    return DecisionQuestion(ps.load_study(write_small_study(folder, study, scenario)), **changes).answer(SILENT)


def page(made):
    """What the template of the page knows."""
    return made.pages["report.html"].values


def drawing(made, name):
    return next(one for one in made.drawings if one.name == name)


# Next to no deaths at the study's epsilon, and many at another.
RARE = STUDY.replace("epsilon = 1.0", "epsilon = 20", 1).replace("[0.5, 1.0, 4.0]", "[0.5, 20]")
RARE = re.sub(r"policies = .*", 'policies = ["randomized-response", "optimal"]', RARE)


def test_all_deaths_of_a_page_are_counted_among_the_same_number_of_patients(tmp_path):
    made = answer(
        tmp_path, RARE, SCENARIO.replace("death = 0.05", "death = 5e-6").replace("death = 0.001", "death = 1e-7")
    )
    assert page(made)["count"] > 100_000
    per = f"{page(made)['count']:,}"
    assert f"per {per}, " in page(made)["brief"].strip[0].label
    curves, line = drawing(made, "frontier"), drawing(made, "benefit-vs-deaths")
    assert f"deaths per {per} patients" in curves.description
    assert any(f"deaths per {per} patients" in title for title, _ in curves.data.spans)
    assert f"deaths per {per} patients" in curves.at("page").axes[1].get_title(loc="left")
    assert line.data.headings[-1] == f"extra deaths per {per}"
    assert f"deaths per {per} patients" in line.at("page").axes[0].get_xlabel()


# One treatment for all is nearly as good as the best for each, and choosing for each costs more deaths.
LITTLE = SCENARIO.replace("cost = 0.05\n", "cost = 0.0\n").replace('"syrup"\ncost = 0.02', '"syrup"\ncost = 0.5')
LITTLE = LITTLE.replace("side_effects = { cough = 0.1 }", "side_effects = { cough = 0.001 }")
LITTLE = LITTLE.replace("death = 10", "death = 0")


def test_without_shares_none_is_said_of_what_the_optimum_keeps(tmp_path):
    study = re.sub(r"policies = .*", 'policies = ["optimal"]', STUDY).replace("4.0]", "4.0, 8.0, 16.0]")
    made = answer(tmp_path, study, LITTLE)
    said = readable(page(made)["flat"])
    assert "more deaths" in said
    assert not page(made)["findings"].gain.has_shares
    assert "–" not in said
    assert "keeps" not in said


# The pill twice, under two names.
TWINS = SCENARIO.replace(
    "[death]",
    '[treatments.tablet]\ntitle = "tablet"\ncost = 0.05\nclears = { infected = 0.5, fever = 0.5 }\n'
    "side_effects = { cough = 0.1 }\n\n[death]",
    1,
)


def test_who_gets_one_of_two_equally_good_treatments_gets_the_best(tmp_path):
    study = STUDY.replace("epsilon = 1.0", "epsilon = 5000", 1).replace("4.0]", "5000]")
    made = answer(tmp_path, re.sub(r"policies = .*", 'policies = ["exponential"]', study), TWINS)
    patients = page(made)["slider"].patients
    assert {"pill", "tablet"} in [set(patient.best) for patient in patients]
    said = readable(page(made)["headings"].patients)
    assert said.endswith(f"gives all of {len(patients)} example patients their best treatment more often than not")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Nearly all patients are of one level: no group loses much more than the average, and one loses nearly nothing."""
    scenario = SCENARIO.replace("infected = 0.3,", "infected = 0.98,").replace("death = 0.001 }", "death = 0.04 }")
    study = re.sub(r"by = .*", 'by = ["infected"]', STUDY).replace('"exponential", ', "")
    return answer(tmp_path_factory.mktemp("one"), study, scenario)


def test_groups_are_not_called_alike_where_one_loses_less(made):
    losses = [group.loss for group in page(made)["slider"].groups]
    average = page(made)["slider"].now["loss"]
    assert max(losses) < 1.05 * average
    assert min(losses) < 0.9 * average
    assert readable(page(made)["headings"].groups).startswith("No group loses much more than the average under ")


def row(policy, group="all", **columns):
    return {"policy": policy, "epsilon": 1.0, "group": group, "level": "1", "share": 0.5, "loss": 0.2, **columns}


def test_groups_under_one_policy_alone_have_no_panel_for_each(made):
    table = pd.DataFrame([row("best-fixed"), row("best-fixed", "infected")])
    said = groups_drawing(table, ["best-fixed"]).description
    assert said == "The utility that each group of patients loses under best-fixed."
    assert "a panel for each of 2 policies" in drawing(made, "loss-by-group").description


@pytest.mark.parametrize(("stated", "default"), [(1, 0), (1, 1), (0, 1), (2, 1200)])
def test_one_number_is_no_numbers(stated, default):
    found = Robustness(("optimal",), 1, 1, 1, 1, 0.3, stated, default, ())
    said = how_drawn(found)
    for count, words in ((stated, "number from|number of"), (default, "other number of|number of")):
        assert count != 1 or re.search(rf"\b1 ({words})", said)
        assert count < 2 or f"{count:,} " in said
    assert "1 numbers" not in said
    assert "1 other numbers" not in said


def test_fewer_deaths_than_under_the_best_for_each_are_said_to_be_fewer():
    about = {"better_than_untreated": 0.5, "worse_than_untreated": 0.1}
    for extra, words in ((-0.00013, "0.13 fewer die than"), (0.002, "2.0 more die than"), (0.0, "0 more die than")):
        shown = icons_drawing(pd.DataFrame([row("optimal", extra_deaths=extra, **about)]), "optimal")
        assert words in shown.seen
        assert (words.partition(" ")[2], words.partition(" ")[0]) in [
            (text[: len(words.partition(" ")[2])], number) for text, number in shown.data.rows
        ]
        legend = shown.at("page").legends[0].get_texts()
        assert words in " ".join(legend[-1].get_text().split())


def test_a_small_change_of_a_belief_is_told_in_digits_that_show_it(made):
    found = replace(page(made)["findings"], beliefs=Beliefs("optimal", (BeliefRange(*BELIEF),)))
    said = readable(_headings(found, page(made)["slider"]).observer)
    assert said.endswith("from 30.001 to 30.004 of 100")


ALL_OF_THESE = "of these are among “infected” patients ({} of all): {} per 100,000 of them"


@pytest.mark.parametrize(
    ("share", "extra", "words"),
    [
        (0.25, 0.004, f"Net, all {ALL_OF_THESE.format('25 %', '+400')}."),
        (0.25, 0.0038, f"Net, nearly all {ALL_OF_THESE.format('25 %', '+380')}."),
        (0.5, 0.003, f"More than all {ALL_OF_THESE.format('50 %', '+300')}; of the others fewer die."),
        (0.25, 0.002, ""),
    ],
)
def test_who_dies_adds_up(made, share, extra, words):
    table = pd.DataFrame([row("optimal", extra_deaths=0.001), row("optimal", "infected", extra_deaths=extra)])
    table.loc[1, "share"] = share
    found = replace(page(made)["findings"], rows=[PolicyRow("optimal", 0.1, 0.001, 0.0, 1.0, 1.0, 1.0)])
    assert readable(who_dies(table, "optimal", found, page(made)["study"])) == words


BELIEF = ("age", "60+", "age 60+", 0.300012, 0.30001, "none", 0.300041, "pill")


@pytest.mark.parametrize(
    ("kept", "words"),
    [
        ((0.2, 0.1), "both mechanisms that spend ε are worth more"),
        ((0.2, -0.1), "one of the 2 mechanisms that spend ε is worth more"),
        ((-0.2, -0.1), "neither of the two mechanisms that spend ε is worth more"),
        ((0.3, 0.2, 0.1), "all of the 3 mechanisms that spend ε are worth more"),
    ],
)
def test_two_mechanisms_are_both_or_neither(made, kept, words):
    names = ("optimal", "exponential", "randomized-response")
    rows = [PolicyRow(name, share, 0.0, 0.0, 1.0, 1.0, 1.0) for name, share in zip(names, kept, strict=False)]
    found = replace(page(made)["findings"], rows=rows)
    assert words in readable(_headings(found, page(made)["slider"]).policies)


def test_what_costs_next_to_nothing_to_hide_does_not_cost_none_of_the_benefit(made):
    prices = pd.DataFrame({"hides": ["age"], "used": [True], "loss": [1e-7], "benefit_kept": [0.99999]})
    said = readable(_headings(page(made)["findings"], page(made)["slider"], prices).prices)
    assert said == "Of single features, “age” costs most to hide: less than 0.1 % of the benefit"


def _headings(findings, slider, prices=None):
    parts = pd.DataFrame({"policy": ["best-fixed"], "outcome": ["fever"], "lost": [0.0]})
    drivers = pd.DataFrame({"outcome": ["fever"], "share": [0.0]})
    return headings(findings, slider, most_kept=math.nan, parts=parts, drivers=drivers, prices=prices)


def test_the_name_of_what_is_allowed_needs_no_comma_in_a_sentence():
    public, mask = Listed.sensitive([[0, 0], [1, 0]], [1]), [[True, True], [True, False]]
    problem = DecisionProblem([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], public, ["a", "b"], admissible=mask)
    assert problem.best_fixed_name == "a or b as allowed"
    assert problem.name_for_all(1) == "b where allowed"


def test_a_treatment_that_nobody_may_have_leaves_the_page_whole(tmp_path):
    scenario = SCENARIO.replace(
        "[treatments.pill]\n", '[treatments.pill]\ncontraindicated = [{ age = ["young", "old"] }]\n'
    )
    study = STUDY.replace('adjacency = "any-record"', 'public = ["age"]')
    made = answer(tmp_path, study.replace('"randomized-response"]', '"optimal", "optimal-safe"]'), scenario)
    assert (made.tables["comparison"]["p_pill"] == 0).all()
    values = page(made)
    assert all("pill" in patient.not_allowed for patient in values["slider"].patients)
    said = [*values["brief"].points, *vars(values["headings"]).values(), *made.sentences, made.headline]
    assert not any("pill" in str(text) for text in said)
    assert drawing(made, "action-probabilities").at("page").axes


def test_what_it_costs_to_treat_patients_differently_is_against_one_treatment_for_all(made):
    found, mine = page(made)["findings"], PolicyRow("optimal", 0.1, 0.0, 0.0, 1.0, 1.0, 1.0)
    # One treatment for all saves lives against the best treatment for each: 0 extra deaths are 40 more.
    deaths = {"best-fixed": [-0.0004] * 3, "optimal": [-0.0004, -0.0001, 0.0]}
    values = {"best-fixed": [1.0] * 3, "optimal": [1.0, 1.2, 1.3]}
    table = pd.DataFrame(
        row(name, value=values[name][place], extra_deaths=deaths[name][place], benefit_kept=0.5) | {"epsilon": epsilon}
        for name in deaths
        for place, epsilon in enumerate((0.5, 1.0, 4.0))
    )
    said = readable(flat_sentence(table, replace(found, rows=[mine])))
    assert said.endswith("at the price of up to 40 more deaths per 100,000 (at ε = 4, where it keeps 50 %).")
