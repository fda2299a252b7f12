"""What a study says of where its effects are from, and what it calls groups of patients."""

import pandas as pd
import pytest
from small_studies import SCENARIO, STUDY, write_small_study

import policysim as ps
from policysim.cli.main import main
from policysim.study.labels import basis, counted_illustrative, in_words
from policysim.words import level_name

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
    assert ("illustrative" in said.disclaimer) == (source == SOURCE)


def test_groups_are_called_what_the_scenario_calls_them(covid):
    table = pd.DataFrame({"group": ["all", "sex", "sex", "age", "fever"], "level": ["all", "0", "1", "80+", "0"]})
    named = in_words(table, covid.space)
    said = [level_name(group, level) for group, level in zip(named["group"], named["level"], strict=True)]
    assert said[1:] == ["male", "female", "age 80+", "not fever"]
    # The comparison itself keeps the levels of the data.
    assert table["level"].tolist() == ["all", "0", "1", "80+", "0"]
