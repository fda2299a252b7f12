"""docs/study-file.md has every key that a reader of study and scenario files asks for, with its default."""

import importlib.util
import re
import shutil
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest
from hostile_files import COHORTS, SCENARIOS, STUDIES, TRIALS, file_bytes, in_folder

from envs.scenario import Scenario
from envs.scenario_reader import load_scenario
from envs.toml_reader import TomlTable
from policies.catalogue import DEFAULT_POLICIES, WITHOUT_LEAD
from policysim.study.declared import PREVALENCE
from policysim.study.study_reader import load_study
from policysim.study.sweep import EPSILONS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "study-file.md").read_text(encoding="utf-8")
spec = importlib.util.spec_from_file_location("study_file", ROOT / "docs" / "study_file.py")
study_file = importlib.util.module_from_spec(spec)
spec.loader.exec_module(study_file)
# Their help says in words what stands below them.
IN_WORDS = {"data.propensity", *(f"treatments.NAME.rules[].{step}" for step in ("set", "add", "multiply"))}


def test_the_page_is_made_of_the_docstrings():
    assert study_file.page_of(PAGE) == PAGE


def test_a_key_that_the_page_lacks_changes_it(monkeypatch):
    with_key = Scenario.__doc__.replace("    ----\n", "    ----\n    planted : 3\n        a\n        key\n", 1)
    monkeypatch.setattr(Scenario, "__doc__", with_key)
    assert "|---|---|---|\n| `planted` | 3 | a key |\n| `title` |" in study_file.page_of(PAGE)


def test_defaults_that_code_computes_are_those_of_the_page():
    defaults = documented()
    assert defaults["privacy.epsilons"] == f"{len(EPSILONS)} values from {EPSILONS[0]:g} to {EPSILONS[-1]:g}"
    assert defaults["compare.policies"] == ", ".join(DEFAULT_POLICIES)
    assert [name for name in DEFAULT_POLICIES if name != "optimal-safe"] == list(WITHOUT_LEAD)
    assert defaults["compare.robust"] == f'"{PREVALENCE}"; for a log or a cohort, none'


def documented():
    """The keys in the first columns of the tables of the page, and their defaults."""
    return dict(re.findall(r"^\| `([^`]+)` \| (?:(.+?) )?\| .+ \|$", PAGE, flags=re.MULTILINE))


THREE_FILES = """
[data]
file = { features = "f.csv", actions = "a.csv", outcomes = "o.csv" }
treatment = "arm"
treatments = { 0 = "wait", 1 = "drug" }
propensity = { wait = 1, drug = 2 }
outcome = { cured = 1 }
range = [0, 1]
features = { age = { cuts = [40, 60] } }
"""
TIMES = THREE_FILES.replace(
    "outcome = { cured = 1 }",
    'time = "t"\nevent = { column = "e", event = 2, censored = 1, competing = 3 }\nhorizon = 9',
).replace("range = [0, 1]", "")
THREE_TABLES = {"study.toml": THREE_FILES, "f.csv": "", "a.csv": "", "o.csv": ""}


@pytest.fixture(scope="module")
def asked():
    """The keys that readers ask for in many files, by their parts, each with the defaults that they take."""
    defaults = defaultdict(list)
    read, contains, iterate = TomlTable._read, TomlTable.__contains__, TomlTable.__iter__

    def note(table, name, *default):
        key = (*(part for part in table.key if isinstance(part, str)), name)
        if name not in ("value", "interval") and isinstance(name, str):
            defaults[key].extend(default)

    def noted_read(table, name, default, *more):
        note(table, name, default)
        return read(table, name, default, *more)

    def noted_contains(table, name):
        note(table, name)
        return contains(table, name)

    def noted_iterate(table):
        for name in table.values:
            note(table, name)
        return iterate(table)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TomlTable, "_read", noted_read)
        patch.setattr(TomlTable, "__contains__", noted_contains)
        patch.setattr(TomlTable, "__iter__", noted_iterate)
        for files in [*SCENARIOS, *STUDIES, *TRIALS, *COHORTS, THREE_TABLES, THREE_TABLES | {"study.toml": TIMES}]:
            with in_folder({name: file_bytes(name, content) for name, content in files.items()}):
                load_study("study.toml") if "study.toml" in files else load_scenario("scenario.toml")
    return defaults


def fits(key, row):
    """Whether a key that was asked for is that of a row, or above it, or below one that says in words what is there."""
    parts = row.replace("[]", "").split(".")
    same = all(part == name or part.isupper() for part, name in zip(parts, key, strict=False))
    return same and (len(key) <= len(parts) or row in IN_WORDS)


def test_the_page_has_every_key_that_a_reader_asks_for(asked):
    assert [key for key in asked if not any(fits(key, row) for row in documented())] == []


def test_a_reader_asks_for_every_key_of_the_page_with_the_default_of_the_page(asked):
    for row, words in documented().items():
        chosen = row.rpartition(".")[2].isupper()  # by the file: then the table is asked for
        keys = [key for key in asked if fits(key, row) and len(key) == row.count(".") + (not chosen)]
        assert keys, row
        # A number may be a table, too.
        defaults = [default for key in keys for default in asked[key] if default != {}]
        if words == "required" and not chosen:
            assert None in defaults, row
        if re.fullmatch(r'\d\S*|"[^"]*"|true|false', words) and not chosen:
            assert set(defaults) == {tomllib.loads(f"value = {words}")["value"]}, row


def blocks():
    return re.findall(r"^```toml\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_page_are_those_that_ship_and_are_read(tmp_path):
    whole, of_log, of_treatment = blocks()
    covid = (ROOT / "envs" / "scenarios" / "covid.toml").read_text(encoding="utf-8")
    weighed = covid.replace("[weights]\n", "[weights]\nstroke = 3\n")
    (tmp_path / "more.toml").write_text(f"{weighed}\n{of_treatment}", encoding="utf-8")
    more = load_scenario(tmp_path / "more.toml")
    assert list(more.treatments) == ["a0", "a1", "a2", "a3", "a4"]
    assert more.outcomes[-2:] == ("stroke", "death")
    assert more.contraindication_features == ("asthma", "heart_disease", "age")
    assert more.intervals == {"treatments.a4.clears.pneumonia": (0.4, 0.6)}
    ward = ROOT / "examples" / "ward" / "study.toml"
    assert whole == ward.read_text(encoding="utf-8")
    assert load_study(ward).utility.weights["death"] == 20
    assert load_scenario(ward.with_name("scenario.toml")).space.size == 32
    shutil.copy(ROOT / "examples" / "trial.csv", tmp_path)
    (tmp_path / "trial.toml").write_text(of_log, encoding="utf-8")
    assert list(load_study(tmp_path / "trial.toml").log.features) == ["age", "severity"]
