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


ARMS = '[data.treatments]\n0 = "wait"\n1 = "drug"\n[data.features]'
FOLLOWED = 'time = "days"\nevent = "relapse"\nhorizon = 365'


def with_arms(section):
    return section.replace("[data.features]", ARMS)


def with_follow_up(section):
    return section.replace("outcome = { success = 1.0 }", FOLLOWED)


def logistic(section):
    return section.replace("[data.features]", 'model = "logistic"\n[data.features]')


def test_a_logistic_model_takes_an_outcome_of_0_and_1(read_section, section):
    for outcome in ("{ success = 1.0, harm = 0 }", "{ success = { Yes = 1, No = 0 } }"):
        assert read_section(logistic(section).replace("{ success = 1.0 }", outcome)).outcome_model == "logistic"
    assert read_section(section.replace("1.0", "2.0")).outcome_model == "linear"


def test_a_ratio_of_a_randomisation_is_in_the_order_of_the_treatments(read_section, section):
    text = with_arms(section)
    assert read_section(text.replace('"equal"', "{ drug = 2.5, wait = 1 }")).propensity == (1.0, 2.5)
    assert read_section(text.replace('"equal"', '"arm shares"')).propensity == "arm shares"


def test_with_time_event_and_horizon_the_outcome_is_to_be_free_of_the_event(read_section, section):
    source = read_section(with_follow_up(section))
    assert source.follow_up == light.FollowUp("days", "relapse", (365.0,))
    assert source.follow_up.title == "free of relapse at days = 365"
    assert (source.outcome, source.utility_range, source.outcome_title) == ({}, (0.0, 1.0), "")
    shown = '365\noutcome = { success = 0 }\nrange = [0, 1]\nmodel = "logistic"\noutcome_title = "well"'
    source = read_section(with_follow_up(section).replace("365", shown))
    assert (source.outcome, source.outcome_model, source.outcome_title) == ({"success": 0.0}, "logistic", "well")
    assert read_section(section).follow_up is None


def test_each_value_of_an_event_may_have_a_meaning(read_section, section):
    event = '{ column = "status", event = [2, "dead "], censored = 1.0, competing = "moved" }'
    follow_up = read_section(with_follow_up(section).replace('"relapse"', event)).follow_up
    meant = {"2": EVENT, "dead": EVENT, "1": CENSORED, "moved": COMPETING}
    assert (follow_up.event, follow_up.codes) == ("status", meant)
    assert follow_up.title == "free of status = 2 or dead at days = 365"


def test_three_files_may_have_an_action_in_each_column(read_section, section, tmp_path):
    three = '{ features = "f.csv", actions = "a.parquet", outcomes = "o.csv" }'
    source = read_section(section.replace('"trial.csv"', three).replace('treatment = "arm"\n', ""))
    assert source.files == {
        "features": tmp_path / "f.csv",
        "actions": tmp_path / "a.parquet",
        "outcomes": tmp_path / "o.csv",
    }
    assert source.treatment == ""


EQUAL, OUTCOME, CUTS, LEVELS = '"equal"', "{ success = 1.0 }", "cuts = [30, 50]", "levels = [0, 1]"
LAST = "[data.features]"  # behind whose line a key may stand
FILE = 'file = "trial.csv"'
# What is written in place of what, and the lines of the study with what is said of it.
IN_A_SECTION = [
    (FILE, "", "data: file is missing"),
    ('"trial.csv"', '"gone.csv"', ":3: data.file: there is no file"),
    ('"trial.csv"', '"trial.xlsx"', ":3: data.file: must end in .csv, .tsv, .txt or .dat"),
    ('"trial.csv"', '{ features = "f.csv", actions = "a.parquet" }', ":3: data.file: outcomes is missing"),
    ('treatment = "arm"', "", "data: treatment is missing"),
    ("treatment =", "treatmemt =", ":4: data.treatmemt: unknown key 'treatmemt'; did you mean 'treatment'?"),
    ('"arm"', '["arm"]', ":4: data.treatment: one column needs no list: treatment = 'arm'"),
    ('"arm"', '["arm", "arm"]', ":4: data.treatment[1]: names 'arm' twice"),
    ('"arm"', '["arm", 1]', ":4: data.treatment[1]: must be a column, got 1"),
    ('"arm"', '["arm", "age"]', "'age' is the treatment already: a feature must be known before treatment"),
    (EQUAL, "{ a = 1, b = 2 }", ":5: data.propensity: a ratio needs [data.treatments], whose names it has"),
    (OUTCOME, "{}", ":6: data.outcome: needs a column with a weight other than 0"),
    (OUTCOME, "{ arm = 1.0 }", ":6: data.outcome.arm: 'arm' is the treatment already"),
    ("1.0", "1e200", ":6: data.outcome.success: must be a number within ±1e+50, got 1e+200"),
    ("1.0", "{ Yes = 1, No = 1 }", ":6: data.outcome.success: must give at least two values different utilities"),
    ("1.0", "{ Yes = 1, NA = 0 }", ":6: data.outcome.success: 'NA' is how a missing value is written, and has no"),
    ("1.0", "{ 1 = 1, '1.0' = 0 }", ":6: data.outcome.success: '1.0' is the same value as '1'"),
    ("1.0", "{ Yes = 'good', No = 0 }", ":6: data.outcome.success.Yes: must be a number, got 'good'"),
    (LAST, f'outcome_checked = ["succes"]\n{LAST}', ":7: data.outcome_checked"),
    (LAST, f'outcome_checked = "success"\n{LAST}', ":7: data.outcome_checked"),
    (LAST, f"range = [1, 0]\n{LAST}", ":7: data.range: must be [lowest, highest] reward"),
    (LAST, f"range = [0, 1e200]\n{LAST}", ":7: data.range[1]: must be a finite number within ±1e+50, got 1e+200"),
    (LAST, f'adjust_for = ["success"]\n{LAST}', "adjust_for: 'success' is the outcome already"),
    (LAST, f'adjust_for = ["age"]\n{LAST}', "adjust_for: 'age' is a feature, which is adjusted for already"),
    (LAST, f'cluster = "arm"\n{LAST}', "'arm' is the treatment already"),
    (LAST, f'cluster = "success"\n{LAST}', "'success' is the outcome already"),
    (LAST, f"unknown = {{ sex = [1] }}\n{LAST}", ":7: data.unknown.sex[0]: 1 is declared: it cannot be unknown, too"),
    (LAST, f"unknown = {{ sexx = [9] }}\n{LAST}", "unknown column 'sexx'; did you mean 'sex'"),
    (LAST, f'unknown = ["NA"]\n{LAST}', ":7: data.unknown[0]: 'NA' is missing anyway"),
    (LAST, f'[data.treatments]\n0 = "a"\n{LAST}', ":7: data.treatments: a choice needs at least two treatments"),
    (LAST, ARMS.replace("drug", "wait"), ":7: data.treatments: a choice needs at least two"),
    (LAST, ARMS.replace("1 =", '"0.0" ='), ":9: data.treatments.0.0: is the same value as '0'"),
    (LAST, ARMS.replace("drug", " "), ":9: data.treatments.1: must be a name, not empty"),
    (LEVELS, "", ":9: data.features.sex: must be { levels = [...] } or { cuts = [...] }"),
    (LEVELS, "levels = [0]", ":9: data.features.sex.levels: needs at least two levels"),
    (LEVELS, "levels = [0, 1, 1.0]", ":9: data.features.sex.levels[2]: 1.0 is the same level as 1"),
    (LEVELS, 'levels = [0, " "]', ":9: data.features.sex.levels[1]: ' ' is empty: write \"NA\" for missing"),
    (LEVELS, 'levels = [0, "NA"], missing = true', 'missing = true goes with cuts; among levels, "NA" stands for miss'),
    (CUTS, "cuts = [30], missing = 1", "must be true or false, got 1"),
    (CUTS, "cuts = [50, 30]", ":8: data.features.age.cuts[1]: 30 must be greater than the cut before, 50"),
    ("sex =", "success =", "'success' is the outcome already: a feature must be known before treatment"),
]
SEX = "sex = { levels = [0, 1] }"
DEATH = "[utility]\ncosts = { drug = 1 }\n[compare]\nat_most = { death = 1 }"
BESIDE_ARMS = [
    (EQUAL, "{ wait = 1 }", ":5: data.propensity: has no number for the treatment 'drug'"),
    (EQUAL, "{ wait = 1, drug = 0 }", ":5: data.propensity.drug: must be > 0, got 0"),
    (EQUAL, "{ wait = 1, drug = inf }", ":5: data.propensity.drug: must be a number within ±1e+50, got inf"),
    (EQUAL, "{ wait = 1, drugs = 2 }", ":5: data.propensity.drugs: unknown treatment 'drugs'; did you mean 'drug'?"),
    (
        SEX,
        f"{SEX}\n[utility]\ncosts = {{ drog = 1 }}",
        "utility.costs.drog: unknown action 'drog'; did you mean 'drug'",
    ),
    (SEX, f'{SEX}\n[utility]\ncosts = {{ drug = "dear" }}', ":14: utility.costs.drug: must be a number, got 'dear'"),
    (SEX, f"{SEX}\n[utility]\nweights = {{ success = 1 }}", "utility.weights: does not go with a log: weigh its outc"),
    (SEX, f"{SEX}\n[capacity]\nwait = 0.1\ndrug = 0.2", "every treatment is limited, and the shares sum to 0.3"),
    (SEX, f"{SEX}\n[compare]\nat_most = {{ costs = 1 }}", "bounds costs in a log: it needs [utility] costs"),
    (SEX, f"{SEX}\n{DEATH}", "compare.at_most.death: unknown outcome"),
]
RELAPSE = '"relapse"'
OF_FOLLOW_UP = [
    ('time = "days"\n', "", "data: time is missing: time, event and horizon go together"),
    ("horizon = 365", "", "data: horizon is missing: time, event and horizon go together"),
    ("365", "0", ":8: data.horizon: must be > 0, got 0"),
    ("365", "[1, 1]", ":8: data.horizon[1]: is 1 twice"),
    ('"days"', '"arm"', ":6: data.time: 'arm' is the treatment already: name another column"),
    (RELAPSE, '"days"', ":7: data.event: 'days' is the time already: name another column"),
    (RELAPSE, '"sex"', "'sex' is the event already: a feature must be known before treatment"),
    ("365", "365\noutcome = { cured = 1 }", ":9: data.outcome.cured: must be 0: with time, event and"),
    ("365", "365\nrange = [0, 2]", ":9: data.range: is [0, 1] with time, event and horizon: leave it"),
    (RELAPSE, "{ column = 'ill', event = 2 }", ":7: data.event: censored is missing: it must be a number or text"),
    (RELAPSE, "{ event = 2, censored = 1 }", ":7: data.event: column is missing"),
    (RELAPSE, "{ column = 'ill', event = 2, censored = [1, 2.0] }", ":7: data.event.censored: 2 is there already"),
    (RELAPSE, "{ column = 'ill', event = true, censored = 1 }", ":7: data.event.event: must be a number or text in q"),
    (RELAPSE, "{ column = 'ill', event = [], censored = 1 }", ":7: data.event.event: must not be empty"),
    (RELAPSE, "{ column = 'ill', event = 1, censored = 'NA' }", ":7: data.event.censored: 'NA' is how a missing value"),
    (RELAPSE, "{ column = 'ill', event = 1, censored = 0, other = 2 }", ":7: data.event.other: unknown key 'other'"),
]
NOT_0_AND_1 = ':7: data.model: "logistic" predicts rewards of 0 and 1: it n'
OF_LOGISTIC_MODELS = [
    (OUTCOME, "{ success = 2.0 }", NOT_0_AND_1),
    (OUTCOME, "{ cured = 1.0, well = 1.0 }", NOT_0_AND_1),
    (OUTCOME, "{ death = -1.0 }", NOT_0_AND_1),
    (OUTCOME, "{ success = { Yes = -1, No = 0 } }", NOT_0_AND_1),
    (OUTCOME, "{ success = { Yes = 0.5, No = 0 } }", NOT_0_AND_1),
]
MISTAKES = [
    *((str, *mistake) for mistake in IN_A_SECTION),
    *((with_arms, *mistake) for mistake in BESIDE_ARMS),
    *((with_follow_up, *mistake) for mistake in OF_FOLLOW_UP),
    *((logistic, *mistake) for mistake in OF_LOGISTIC_MODELS),
]


@pytest.mark.parametrize(("written", "old", "new", "said"), MISTAKES)
def test_each_mistake_is_told_with_its_line(read_section, section, *, written, old, new, said):
    text = written(section)
    assert old in text
    lines = mistakes(read_section, text.replace(old, new))
    assert any(("study.toml" + said if said.startswith(":") else said) in line for line in lines), lines


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
