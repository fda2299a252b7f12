"""What a study says of where its effects are from, and what it calls groups of patients."""

from pathlib import Path

import pandas as pd
import pytest
from small_studies import SCENARIO, STUDY, write_small_study

import policysim as ps
from policysim.cli.main import main
from policysim.question.words import level_name
from policysim.study.labels import OUTSIDE, basis, counted_illustrative, in_words

SOURCE = 'source = "illustrative"\n'


@pytest.mark.parametrize(
    ("source", "disclaimer"),
    [
        (SOURCE, "A model with illustrative effects, not medical advice."),
        ("", "A model, not medical advice."),
        (
            'source = "the trial of Wong (2031)"\n',
            "A model with effects from the trial of Wong (2031), not medical advice.",
        ),
    ],
)
def test_illustrative_follows_the_scenario(tmp_path, capsys, source, disclaimer):
    path = write_small_study(tmp_path, STUDY, SCENARIO.replace(SOURCE, source, 1))
    study = ps.load_study(path)
    said = basis(study)
    assert said.disclaimer == disclaimer
    # Rules without a source are illustrative whatever the scenario's is.
    illustrative, total = counted_illustrative(study)
    assert (illustrative == total) == (source == SOURCE)
    assert main(["simulate", str(path), "--patients", "100"]) == 0
    assert disclaimer in capsys.readouterr().out
    everything = " ".join([said.disclaimer, said.utilities, said.not_guaranteed])
    assert ("illustrative" in everything) == (source == SOURCE)


def test_groups_are_called_what_the_scenario_calls_them(covid):
    table = pd.DataFrame({"group": ["all", "sex", "sex", "age", "fever"], "level": ["all", "0", "1", "80+", "0"]})
    named = in_words(table, covid.space)
    said = [level_name(group, level) for group, level in zip(named["group"], named["level"], strict=True)]
    assert said[1:] == ["male", "female", "age 80+", "not fever"]
    # The comparison itself keeps the levels of the data.
    assert table["level"].tolist() == ["all", "0", "1", "80+", "0"]


def test_what_a_guarantee_does_not_cover_is_on_the_page_about_epsilon_and_on_one_line_of_a_screen():
    page = Path(__file__).parents[3] / "docs" / "what-epsilon-means.md"
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert all(said in text for said in OUTSIDE)
    everything = " ".join(OUTSIDE)
    assert all(part in everything for part in ("outcomes", "in place of the one drawn", "fitted", "changes the states"))
