"""The files of findings: what they may say, and what they ask for."""

import pytest

from policysim.study.cells import FOLDER, Label, checked_words, six_lines, words_of

LINES = ["Safest", "Gain", "Cost", "Who pays", "Observer", "Certain?"]


def test_six_lines_of_at_most_two_wordings():
    found = words_of("decision").findings
    assert list(dict.fromkeys(each.line for each in found)) == LINES
    assert len(found) <= 12
    assert len({each.when for each in found}) == len(found)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_every_file_of_findings_is_sound(path):
    checked_words(path.read_text(encoding="utf-8"))


FINDING = '[[finding]]\nline = "{}"\nwhen = "a"\ntext = "{}"\n'


@pytest.mark.parametrize(
    ("planted", "fault"),
    [
        (FINDING.format("Gain", "In 106 of them."), "digit"),
        (FINDING.format("Gain", "{{ 'both' if a else 'neither' }}"), "decides"),
        (FINDING.format("Gain", "{{ a|round }}"), "filter"),
        (FINDING.format("Gain", "Yes.") * 3, "wordings"),
        ("".join(FINDING.format(line, "Yes.") for line in "abcdefghijklm"), "12"),
    ],
)
def test_planted_defects_are_refused(planted, fault):
    with pytest.raises(ValueError, match=fault):
        checked_words(f"{planted}[titles]\n")


def test_a_finding_that_asks_for_no_name_of_the_verdict_is_an_error():
    with pytest.raises(KeyError, match="safest"):
        six_lines("decision", {}, {})


def test_a_number_in_a_name_that_python_made_is_refused():
    holds = dict.fromkeys((each.when for each in words_of("decision").findings), False) | {"no gain": True}
    with pytest.raises(ValueError, match="neither a cell nor a name"):
        six_lines("decision", holds, {"names": {"one": "30 for all"}})
    (line,) = six_lines("decision", holds, {"names": {"one": Label("covid-19 drug for all")}})
    assert line.name == "Gain"
    assert "covid-19 drug" in line.text
    assert "covid-19 drug" in line.text.html
