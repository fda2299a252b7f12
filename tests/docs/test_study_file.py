"""docs/study-file.md has every key that is declared of study and scenario files, and readers take no others."""

import ast
import importlib.util
import re
from pathlib import Path

import pytest

from envs.scenario_reader import load_scenario
from envs.toml_reader import InputFileError, TomlKey
from policies.catalogue import DEFAULT_POLICIES, WITHOUT_LEAD
from policysim.study.declared import PREVALENCE
from policysim.study.study_reader import load_study
from policysim.study.sweep import EPSILONS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "study-file.md").read_text(encoding="utf-8")
spec = importlib.util.spec_from_file_location("study_file", ROOT / "docs" / "study_file.py")
study_file = importlib.util.module_from_spec(spec)
spec.loader.exec_module(study_file)
# Read before anything is declared of a file: it says of which kind the study is.
KINDS = {"analysis", "data", "features", "scenario", "treatments"}


def test_the_page_is_made_of_what_the_readers_declare():
    assert study_file.page_of(PAGE) == PAGE


def test_a_key_that_the_page_lacks_changes_it(monkeypatch):
    planted = TomlKey("planted", "text", "a key that was planted")
    monkeypatch.setitem(study_file.TABLES, "a study", ((planted,), ""))
    assert "| `planted` | required | a key that was planted |" in study_file.page_of(PAGE)


def test_defaults_that_code_computes_are_those_of_the_page():
    words = {key.name: {below.name: below.said for below in key.keys} for key in study_file.study_reader.KEYS}
    assert words["privacy"]["epsilons"] == f"{len(EPSILONS)} values from {EPSILONS[0]:g} to {EPSILONS[-1]:g}"
    assert (
        words["compare"]["policies"]
        == f"{', '.join(DEFAULT_POLICIES)}; where no outcome leads, as in a log, without optimal-safe"
    )
    assert [name for name in DEFAULT_POLICIES if name != "optimal-safe"] == list(WITHOUT_LEAD)
    assert words["compare"]["robust"] == f'"{PREVALENCE}"; for a log or a cohort, none'


@pytest.mark.parametrize(
    "reader", ["envs/scenario_reader.py", "policysim/study/study_reader.py", "policysim/logs/log_source.py"]
)
def test_readers_take_only_what_is_declared(reader):
    """Whatever a reader names, with `table[...]`, `... in table` or a method of the table, is on the page."""
    declared = {name.rpartition(".")[2].removesuffix("[]") for name in documented()}
    named = set(literals(ROOT / reader))
    assert named
    assert named - KINDS <= declared


def documented():
    """The keys in the first columns of the tables of the page."""
    return re.findall(r"^\| `([^`]+)` \|", PAGE, flags=re.MULTILINE)


def literals(path):
    """The keys that a reader's source names."""
    methods = {"text", "number", "integer", "numbers", "list_of", "table", "tables"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        given = []
        if isinstance(node, ast.Subscript) and getattr(node.value, "id", "") in {
            "table",
            "entry",
            "privacy",
            "compare",
        }:
            given = [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in methods:
            given = node.args[:1]
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In):
            given = [node.left]
        yield from (each.value for each in given if isinstance(each, ast.Constant))


@pytest.mark.parametrize(
    ("table", "known"),
    [
        ("privacy", "adjacency, epsilon, epsilons, hidden_from, public, published_patients, seen, sensitive"),
        ("utility", "costs, weights"),
        ("compare", "at_most, by, policies, robust"),
    ],
)
def test_the_reader_refuses_another_key_and_lists_those_of_the_page(tmp_path, table, known):
    (tmp_path / "planted.toml").write_text(f'scenario = "covid"\n[{table}]\nplanted = 1\n')
    with pytest.raises(InputFileError, match=r"unknown key 'planted'; known: ") as error:
        load_study(tmp_path / "planted.toml")
    assert str(error.value).endswith(f"known: {known}")
    on_page = sorted(name.removeprefix(f"{table}.") for name in documented() if name.startswith(f"{table}."))
    assert ", ".join(on_page) == known


def blocks():
    return re.findall(r"^```toml\n(.*?)^```", PAGE, flags=re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_page_are_those_that_ship_and_are_read(tmp_path):
    whole, of_log, of_treatment = blocks()
    covid = (ROOT / "envs" / "scenarios" / "covid.toml").read_text(encoding="utf-8")
    (tmp_path / "more.toml").write_text(f"{covid}\n{of_treatment}", encoding="utf-8")
    more = load_scenario(tmp_path / "more.toml")
    assert list(more.treatments) == ["a0", "a1", "a2", "a3", "a4"]
    assert more.outcomes[-2:] == ("stroke", "death")
    assert more.contraindication_features == ("asthma", "heart_disease", "age")
    assert more.intervals == {"treatments.a4.clears.pneumonia": (0.4, 0.6)}
    ward = ROOT / "examples" / "ward" / "study.toml"
    assert whole == ward.read_text(encoding="utf-8")
    assert load_study(ward).utility.weights["death"] == 20
    assert load_scenario(ward.with_name("scenario.toml")).space.size == 32
    path = ROOT / "examples" / "planted.toml"  # beside the data that it names; never written
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_text", lambda self, **_: of_log if self == path else None)
        assert list(load_study(path).log.features) == ["age", "severity"]
