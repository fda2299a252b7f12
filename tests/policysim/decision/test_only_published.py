"""Where an observer sees a publication alone, each patient gets the best treatment; the publication is randomised."""

from dataclasses import replace

import pytest

import policysim as ps
from policysim.decision.report import report
from policysim.decision.words import screen_of
from policysim.report.findings import BETTER, EQUAL, NOT_SHOWN, UTILITY, WORSE
from policysim.study.labels import labels_of


@pytest.fixture(scope="module")
def ward():
    return replace(ps.load_study("examples/ward/study.toml"), epsilons=(1.0, 5.0))


@pytest.fixture(scope="module")
def published(ward):
    return report(replace(ward, seen="publication", published_patients=40_000))


@pytest.mark.parametrize("verdict", [BETTER, WORSE, NOT_SHOWN, EQUAL])
@pytest.mark.parametrize("seen", ["publication", "treatment"])
def test_a_randomised_copy_is_advised_only_where_it_is_seen_and_the_best_for_each_is_better(
    ward, published, verdict, seen
):
    found = published.findings
    rows = found.differences.eval("option == 'A' and than == 'C'") & found.differences["outcome"].eq(UTILITY)
    judged = found.differences.assign(verdict=found.differences["verdict"].mask(rows, verdict))
    labels = labels_of(ward, ps.build_problem(ward))
    advice = screen_of(replace(found, differences=judged), labels, seen=seen).advice
    assert ("replace entries of the list at random" in advice) == (seen == "publication" and verdict == WORSE)


def test_the_errors_are_those_of_as_many_patients_as_the_study_says(ward, published):
    few, many = (
        found.tables["publishing"].query("epsilon == 1").set_index("way") for found in (report(ward), published)
    )
    ratio = many["error_of_a_count"] / few["error_of_a_count"]
    # Of values as the square root of the patients, of a table of counts not at all.
    assert ratio["noisy values"] == pytest.approx(2)
    assert ratio["noisy table"] == pytest.approx(1)
    assert many.loc["noisy values", "expected_death"] == many.loc["as it is", "expected_death"]
