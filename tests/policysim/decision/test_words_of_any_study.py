"""Sentences of a page that random studies showed to be wrong, or wrongly said."""

import re

import pytest
from small_studies import SCENARIO, STUDY, write_small_study

import policysim as ps
from policysim.decision.decision_question import DecisionQuestion
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
    made = answer(tmp_path, RARE)
    assert page(made)["count"] > 100_000
    per = f"{page(made)['count']:,}"
    assert f"per {per}, " in page(made)["brief"].strip[0].label
    curves, line = drawing(made, "frontier"), drawing(made, "benefit-vs-deaths")
    assert f"deaths per {per} patients" in curves.description
    assert any(f"deaths per {per} patients" in title for title, _ in curves.data.spans)
    assert f"deaths per {per} patients" in curves.at("page").axes[1].get_title(loc="left")
    assert line.data.headings[-1] == f"extra deaths per {per}"
    assert f"deaths per {per} patients" in line.at("page").axes[0].get_xlabel()
