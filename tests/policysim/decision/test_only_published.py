"""Where an observer sees a publication alone, the best is given to each, and a noised copy is published."""

from dataclasses import replace

import pytest
from policysim.decision.decision_question import DecisionQuestion

import policysim as ps
from policysim.progress import SILENT
from policysim.study.certainty import recommended, verdict
from policysim.study.options_table import COPY, ONE, PRIVATE


@pytest.fixture(scope="module")
def ward():
    return replace(ps.load_study("examples/ward/study.toml"), epsilons=(1.0, 5.0))


@pytest.fixture(scope="module")
def published(ward):
    return DecisionQuestion(replace(ward, seen="publication", published_patients=40_000)).answer(SILENT).options


def judged(tables, policy, word):
    certainty = tables["certainty"]
    mine = (certainty["policy"] == policy) & (certainty["measure"] == "value")
    return {**tables, "certainty": certainty.assign(verdict=certainty["verdict"].mask(mine, word))}


@pytest.mark.parametrize("word", ["better", "not better", "cannot be told", "equal"])
def test_a_noised_copy_is_recommended_only_where_the_best_for_each_is_better(published, word):
    chosen = published["columns"].query("stated and option == @PRIVATE")["policy"].iloc[0]
    for of_private in ("better", "cannot be told"):
        found = recommended(verdict(judged(judged(published, "greedy", word), chosen, of_private)))
        # "No private choice can be told to be better" is never said of one that is.
        assert found == (COPY if word == "better" else PRIVATE if of_private == "better" else ONE)


def test_where_the_treatment_is_seen_a_copy_is_never_recommended(published):
    seen = published["names"].assign(text=published["names"]["text"].replace("publication", "treatment"))
    chosen = published["columns"].query("stated and option == @PRIVATE")["policy"].iloc[0]
    for word in ("better", "cannot be told"):
        tables = judged(judged({**published, "names": seen}, "greedy", "better"), chosen, word)
        assert recommended(verdict(tables)) == (PRIVATE if word == "better" else ONE)


def test_the_errors_are_those_of_as_many_patients_as_the_study_says(ward, published):
    few = DecisionQuestion(ward).answer(SILENT).options["ways"]
    many = published["ways"]
    keys = ["row", "option"]
    errors = [table.query("option == 'error'").set_index(keys)["value"] for table in (few, many)]
    ratio = (errors[1] / errors[0]).dropna()
    # Of values as the square root of the patients, of a table of counts not at all.
    assert ratio[("noisy values", "error")] == pytest.approx(2)
    assert ratio[("noisy table", "error")] == pytest.approx(1)
    deaths = many.query("option == 'lead'").set_index("row")["value"]
    assert deaths["noisy values"] == deaths["as it is"]
