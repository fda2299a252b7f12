"""Study files of sources: what they hold, and how their mistakes are told."""

import pytest

from envs.toml_reader import InputFileError
from policysim.sources.source_question import load_source_study
from policysim.study.study_reader import FOLDER

NAMES = ("adult-age-sex", "common-disease", "marital-status", "sock-groups")


# Study, old text, new text, key, part of the message.
MISTAKES = [
    (
        "sock-groups",
        "Violent = 9",
        "Violent = 9.5",
        "groups.Red.Violent",
        "must be a whole number from 0 to 9,007,",
    ),
    ("sock-groups", "[groups.Red]", "[groups.Green]", "scores[1].data", "unknown data 'Red'"),
    (
        "sock-groups",
        'Violent = "0.1"',
        'Violent = "a tenth"',
        "scores[0].printed.Violent",
        "must be a number in quotes",
    ),
    ("sock-groups", 'Violent = "0.1"', "Violent = 0.1", "scores[0].printed.Violent", "must be text in quotes"),
    ("sock-groups", 'Violent = "49"', 'Violent = "59"', "draws[0].printed", "must not be more than the 100 runs"),
    ("sock-groups", "runs = 100", "runs = 0", "draws[0].runs", "must be a whole number >= 1, got 0"),
    ("sock-groups", "Violent = 1\n", "Violent = 0\n", "groups.Blue", "must count somebody for each candidate"),
    ("sock-groups", "sensitivity = 1", "sensitivity = 0", "sensitivity", "must be a number >= 1e-09"),
    ("common-disease", "Influenza = 28", "Flu = 28", "probabilities[0].printed.Influenza", "unknown name 'Influenza'"),
    ("common-disease", "epsilon = 0\n", "epsilon = -1\n", "probabilities[0].epsilon", "must be a number >= 0"),
    (
        "common-disease",
        "right = 949",
        "right = 1000",
        "larger.right",
        "must be more than 0 and less than the 1000 runs",
    ),
    ("common-disease", "largest = 682", "largest = 37080", "larger.largest", "must be less than all 37080 people"),
    ("common-disease", "sensitivity = 1 ", "sensitivty = 1 ", "sensitivty", "unknown key 'sensitivty'"),
    ("marital-status", 'about = "the output', 'about = "the outcome', "claim[2].about", "unknown subject"),
    (
        "marital-status",
        'Divorced = "1"',
        'Divorced = "1.5"',
        "draws[0].printed.Divorced",
        "must be a whole number in quotes",
    ),
    ("marital-status", "divisor = 1000", "divisor = 0", "divisor", "must be a number >= 1e-09"),
    ("adult-age-sex", '= "10389"', '= "10390"', "reports[0].printed", "must sum to 45222 people"),
    ("adult-age-sex", "first = 0.5", "first = -1", "coins.first", "must be a number in [0.01, 0.99]"),
    ("adult-age-sex", 'L1 = "22066"', 'L3 = "22066"', "errors[0].printed.L3", "unknown name 'L3'"),
    ("adult-age-sex", "epsilon = 0.3", "epsilon = 0", "errors[1].epsilon", "must be a number >= 1e-09"),
    (
        "adult-age-sex",
        'analysis = "adult-age-sex"',
        'analysis = "adult-age"',
        "analysis",
        "did you mean 'adult-age-sex'?",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: f"{mistake[0]} {mistake[3]}")
def test_a_mistake_is_told_with_its_line(tmp_path, mistake):
    name, old, new, key, message = mistake
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "mine.toml"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InputFileError) as caught:
        load_source_study(path)
    (line,) = [line for line in str(caught.value).splitlines() if f": {key}: " in line]
    assert message in line
    number = int(line.removeprefix(f"{path.as_posix()}:").split(":")[0])
    last = key.split(".")[-1].split("[")[0]
    assert last in path.read_text(encoding="utf-8").splitlines()[number - 1]


@pytest.mark.parametrize("name", NAMES)
def test_a_file_with_nothing_but_its_analysis_names_all_that_is_missing(tmp_path, name):
    path = tmp_path / "study.toml"
    path.write_text(f'analysis = "{name}"\n', encoding="utf-8")
    with pytest.raises(InputFileError) as caught:
        load_source_study(path)
    assert "source is missing" in str(caught.value)
    assert "is missing: it must be one or more tables of figures" in str(caught.value)
    assert len(str(caught.value).splitlines()) > 2


def test_words_are_those_of_the_built_in_constants_alone(studies, edited, monkeypatch):
    # The losses over hundreds of candidates take long, and are looked at elsewhere.
    monkeypatch.setattr("policysim.sources.documents.NUMBERS", (2, 7, 8, 9))
    said = studies["marital-status"].findings()
    changed = edited("marital-status", ("divisor = 1000 ", "divisor = 500 ")).findings()
    assert "1,000 times too large" in said.headline.finding
    assert changed.lead == (changed.summary,) and "1,000 times" not in changed.headline.finding
    assert [row.figure for row in changed.rows] == [row.figure for row in said.rows]


@pytest.mark.parametrize("name", NAMES)
def test_every_word_of_a_document_is_used_and_every_fact_is_there(studies, findings, name):
    texts, found = studies[name].texts, findings[name]
    assert set(texts["figures"]) == set(studies[name].quotes)
    assert {about for about, _, _ in studies[name].claims} == set(texts["claims"])
    undecided = {about for about, words in texts["claims"].items() if "holds" not in words}
    assert undecided == set(studies[name].facts()["holds"])
    said = [*found.lead, *found.assumptions, *(row.why for row in found.rows)]
    said += [each.description for each in found.drawings]
    assert not [text for text in said if "{" in text or (not text.strip() and text)]
