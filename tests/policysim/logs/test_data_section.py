"""The table [data] of a study: what it means, and every mistake with its line."""

import subprocess
import sys
from pathlib import Path

import pytest

from envs.toml_reader import InputFileError, TomlFile, TomlTable
from policysim.logs import log_source as light
from policysim.logs.data_section import read_data
from policysim.logs.log_source import CENSORED, COMPETING, EVENT


@pytest.fixture(autouse=True)
def _files(tmp_path):
    for name in ("trial.csv", "f.csv", "a.parquet", "o.csv"):
        (tmp_path / name).write_text("")


def mistakes(read_section, text):
    """The lines with which a section is refused."""
    with pytest.raises(InputFileError) as error:
        read_section(text)
    return str(error.value).splitlines()


def test_a_section_is_read_as_written(read_section, tmp_path):
    source = read_section(
        """
        [data]
        file = "trial.csv"
        treatment = "arms"
        propensity = "p"
        outcome = { success = 1, death = 0 }
        range = [-3, 1]
        missing = "worst"
        id = "pidnum"
        model = "logistic"
        [data.treatments]
        1 = "both"
        "0.5" = "half"
        [data.features]
        "age at entry" = { cuts = [28, 34] }
        symptom = { levels = [0, "NA"] }
        """
    )
    assert source.files == {"table": tmp_path / "trial.csv"}
    assert (source.treatment, source.propensity, source.id) == ("arms", "p", "pidnum")
    assert source.treatments == (("1", "both"), ("0.5", "half"))
    assert source.outcome == {"success": 1.0, "death": 0.0}
    assert source.utility_range == (-3.0, 1.0)
    assert (source.missing, source.outcome_model) == ("worst", "logistic")
    assert source.space.names == ("age at entry", "symptom")
    assert source.space.shape == (3, 2)


@pytest.mark.parametrize("outcome", ["{ success = 2.0 }", "{ cured = 1.0, well = 1.0 }", "{ death = -1.0 }"])
def test_a_logistic_model_needs_one_outcome_of_weight_1(read_section, section, outcome):
    text = section.replace("{ success = 1.0 }", outcome).replace(
        "[data.features]", 'model = "logistic"\n[data.features]'
    )
    with pytest.raises(InputFileError, match=r'study.toml:7: data.model: "logistic" predicts rewards of 0 and 1: it n'):
        read_section(text)
    assert read_section(text.replace(outcome, "{ success = 1.0, harm = 0 }")).outcome_model == "logistic"
    assert read_section(text.replace("logistic", "linear")).outcome_model == "linear"


ARMS = '[data.treatments]\n0 = "wait"\n1 = "drug"\n[data.features]'


def test_a_ratio_of_a_randomisation_is_in_the_order_of_the_treatments(read_section, section):
    text = section.replace("[data.features]", ARMS)
    assert read_section(text.replace('"equal"', "{ drug = 2.5, wait = 1 }")).propensity == (1.0, 2.5)
    assert read_section(text.replace('"equal"', '"arm shares"')).propensity == "arm shares"


@pytest.mark.parametrize(
    ("ratio", "said"),
    [
        ("{ wait = 1 }", "data.propensity: has no number for the treatment 'drug'"),
        ("{ wait = 1, drug = 0 }", "data.propensity.drug: must be > 0, got 0"),
        ("{ wait = 1, drug = inf }", "data.propensity.drug: must be a number within ±1e+50, got inf"),
        ("{ wait = 1, drugs = 2 }", "data.propensity.drugs: unknown treatment 'drugs'; did you mean 'drug'?"),
    ],
)
def test_a_ratio_that_cannot_be_is_told_with_its_line(read_section, section, ratio, said):
    lines = mistakes(read_section, section.replace("[data.features]", ARMS).replace('"equal"', ratio))
    assert any(f"study.toml:5: {said}" in line for line in lines), lines


FOLLOWED = 'time = "days"\nevent = "relapse"\nhorizon = 365'


def test_with_time_event_and_horizon_the_outcome_is_to_be_free_of_the_event(read_section, section):
    source = read_section(section.replace("outcome = { success = 1.0 }", FOLLOWED))
    assert source.follow_up == light.FollowUp("days", "relapse", 365.0)
    assert source.follow_up.title == "free of relapse at days = 365"
    assert (source.outcome, source.utility_range, source.outcome_title) == ({}, (0.0, 1.0), "")
    shown = FOLLOWED + '\noutcome = { success = 0 }\nrange = [0, 1]\nmodel = "logistic"\noutcome_title = "well"'
    source = read_section(section.replace("outcome = { success = 1.0 }", shown))
    assert (source.outcome, source.outcome_model, source.outcome_title) == ({"success": 0.0}, "logistic", "well")
    assert read_section(section).follow_up is None


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('time = "days"\n', "", "data: time is missing: time, event and horizon go together"),
        ("horizon = 365", "", "data: horizon is missing: time, event and horizon go together"),
        ("365", "0", "study.toml:8: data.horizon: must be > 0, got 0"),
        ('"days"', '"arm"', "study.toml:6: data.time: 'arm' is the treatment already: name another column"),
        ('"relapse"', '"days"', "study.toml:7: data.event: 'days' is the time already: name another column"),
        ('"relapse"', '"sex"', "'sex' is the event already: a feature must be known before treatment"),
        ("365", "365\noutcome = { cured = 1 }", "study.toml:9: data.outcome.cured: must be 0: with time, event and"),
        ("365", "365\nrange = [0, 2]", "study.toml:9: data.range: is [0, 1] with time, event and horizon: leave it"),
    ],
)
def test_each_mistake_about_follow_up_is_told_with_its_line(read_section, section, *, old, new, said):
    assert old in FOLLOWED
    lines = mistakes(read_section, section.replace("outcome = { success = 1.0 }", FOLLOWED.replace(old, new)))
    assert any(said in line for line in lines), lines


def test_each_value_of_an_event_may_have_a_meaning(read_section, section):
    event = 'event = { column = "status", event = [2, "dead "], censored = 1.0, competing = "moved" }'
    followed = FOLLOWED.replace('event = "relapse"', event)
    follow_up = read_section(section.replace("outcome = { success = 1.0 }", followed)).follow_up
    meant = {"2": EVENT, "dead": EVENT, "1": CENSORED, "moved": COMPETING}
    assert (follow_up.event, follow_up.codes) == ("status", meant)
    assert follow_up.title == "free of status = 2 or dead at days = 365"


@pytest.mark.parametrize(
    ("event", "said"),
    [
        ("{ column = 'status', event = 2 }", "data.event: censored is missing: it must be a number or text in quotes"),
        ("{ event = 2, censored = 1 }", "data.event: column is missing"),
        ("{ column = 'status', event = 2, censored = [1, 2.0] }", "data.event.censored: 2 is there already"),
        ("{ column = 'status', event = true, censored = 1 }", "data.event.event: must be a number or text in quotes, "),
        ("{ column = 'status', event = [], censored = 1 }", "data.event.event: must not be empty"),
        ("{ column = 'status', event = 1, censored = 'NA' }", "data.event.censored: 'NA' is how a missing value is"),
        ("{ column = 'status', event = 1, censored = 0, other = 2 }", "data.event.other: unknown key 'other'; known: "),
    ],
)
def test_a_mistake_about_the_values_of_an_event_is_told_with_its_line(read_section, section, event, said):
    followed = FOLLOWED.replace('"relapse"', event)
    lines = mistakes(read_section, section.replace("outcome = { success = 1.0 }", followed))
    assert any(f"study.toml:7: {said}" in line for line in lines), lines


def test_three_files_may_have_an_action_in_each_column(read_section, section, tmp_path):
    three = '{ features = "f.csv", actions = "a.parquet", outcomes = "o.csv" }'
    source = read_section(section.replace('"trial.csv"', three).replace('treatment = "arm"\n', ""))
    assert source.files == {
        "features": tmp_path / "f.csv",
        "actions": tmp_path / "a.parquet",
        "outcomes": tmp_path / "o.csv",
    }
    assert source.treatment == ""


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ('file = "trial.csv"', "", 1, "data: file is missing"),
        ('"trial.csv"', '"gone.csv"', 3, "data.file: there is no file"),
        ('"trial.csv"', '"trial.xlsx"', 3, "data.file: must end in .csv, .tsv, .txt or .dat"),
        ('"trial.csv"', '{ features = "f.csv", actions = "a.parquet" }', 3, "outcomes is missing"),
        ('treatment = "arm"', "", 1, "data: treatment is missing"),
        ('treatment = "arm"', 'treatmemt = "arm"', 4, "unknown key 'treatmemt'; did you mean 'treatment'?"),
        ('"equal"', "{ a = 1, b = 2 }", 5, "data.propensity: a ratio needs [data.treatments], whose names it has"),
        ("{ success = 1.0 }", "{}", 6, "data.outcome: needs a column with a weight other than 0"),
        ("{ success = 1.0 }", "{ arm = 1.0 }", 6, "data.outcome.arm: 'arm' is the treatment already"),
        ("[data.features]", "range = [1, 0]\n[data.features]", 7, "data.range: must be [lowest, highest] reward"),
        ("[data.features]", '[data.treatments]\n0 = "a"\n[data.features]', 7, "a choice needs at least two treatments"),
        ("[data.features]", '[data.treatments]\n0 = "a"\n1 = "a"\n[data.features]', 7, "a choice needs at least two"),
        ("[data.features]", '[data.treatments]\n0 = "a"\n"0.0" = "b"\n[data.features]', 9, "the same value as '0'"),
        ("[data.features]", '[data.treatments]\n0 = "a"\n1 = " "\n[data.features]', 9, "must be a name, not empty"),
        ("levels = [0, 1]", "", 9, "data.features.sex: must be { levels = [...] } or { cuts = [...] }"),
        ("levels = [0, 1]", "levels = [0]", 9, "data.features.sex.levels: needs at least two levels"),
        ("levels = [0, 1]", "levels = [0, 1, 1.0]", 9, "data.features.sex.levels[2]: 1.0 is the same level as 1"),
        (
            "cuts = [30, 50]",
            "cuts = [50, 30]",
            8,
            "data.features.age.cuts[1]: 30 must be greater than the cut before, 50",
        ),
        (
            "levels = [0, 1]",
            'levels = [0, " "]',
            9,
            "data.features.sex.levels[1]: ' ' is empty: write \"NA\" for missing",
        ),
        ("sex =", "success =", 9, "'success' is the outcome already: a feature must be known before treatment"),
    ],
)
def test_each_mistake_is_told_with_its_line(read_section, section, *, old, new, line, said):
    assert old in section
    lines = mistakes(read_section, section.replace(old, new))
    place = f"study.toml:{line}: " if line > 1 else ""
    assert any(said in text and place in text for text in lines), lines


def test_all_mistakes_are_told_at_once(read_section, section):
    text = section.replace("equal", "").replace("1.0", '"x"').replace("[30, 50]", "[]") + "colour = 3\n"
    lines = mistakes(read_section, text)
    for key in ("data.propensity", "data.outcome.success", "data.features.age", "data.features.colour"):
        assert any(key in line for line in lines)


def test_features_must_be_declared(read_section, section):
    with pytest.raises(InputFileError, match="features are missing"):
        read_section(section.partition("[data.features]")[0])


def test_a_domain_too_large_is_refused_in_one_line(read_section, section):
    many = "".join(f"f{i} = {{ levels = [0, 1] }}\n" for i in range(19))
    assert read_section(section + many[: many.rindex("f18")]).space.size == 6 * 2**18
    (line,) = mistakes(read_section, section + many)
    assert "3,145,728 records are declared, at most 2,000,000" in line
    # Of so many that Python writes no number of them: log10(2**15000) is 4515.4.
    file = TomlFile(Path("study.toml"), "")
    data = {"features": {f"f{i}": {"levels": [0, 1]} for i in range(15_000)}}
    read_data(TomlTable(data, ("data",), file), Path())
    assert any("about 10^4515 records are declared, at most 2,000,000" in message for _, message in file.mistakes)


def test_a_study_is_read_without_heavy_libraries():
    code = "import sys, policysim.logs.log_source; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pandas", "pyarrow", "sklearn"} & set(loaded)
