"""docs/study-file.md has every key that the readers of study and scenario files know, and no others."""

import ast
import re
from pathlib import Path

import pytest

from envs.scenario_file import load_scenario
from envs.toml_reader import InputFileError, Table
from policysim.study.study_file import load_study

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "study-file.md").read_text(encoding="utf-8")
READERS = (
    "envs/scenario_file.py",
    "envs/features_file.py",
    "envs/treatments_file.py",
    "envs/hazards_file.py",
    "policysim/study/study_file.py",
    "policysim/logs/data_section.py",
)
# A scenario that says everything that a scenario can say.
LANGUAGE = ROOT / "tests" / "envs" / "data" / "language.toml"
# Tables whose keys the file chooses: what the page calls them. A reader takes whatever stands there.
CHOSEN = {
    "features": "NAME",
    "treatments": "NAME",
    "data.features": "NAME",
    "data.treatments": "VALUE",
    "data.outcome": "COLUMN",
    "rules[].when": "FEATURE",
    "weights": "OUTCOME",
    "natural_clearing": "FLAG",
    "onset": "FLAG",
    **{f"rules[].{operation}": "FLAG" for operation in ("set", "add", "multiply")},
    **{f"treatments.NAME.{effect}": "FLAG" for effect in ("clears", "side_effects")},
    "treatments.NAME.hazard_ratio": "EVENT",
    "treatments.NAME.contraindicated[]": "FEATURE",
    "treatments.NAME.rules[].when": "FEATURE",
    "events": "NAME",
    **{f"{hazard}.hazard": "FLAG" for hazard in ("death", "events.NAME")},
    **{f"{hazard}.{risks}": "FEATURE" for hazard in ("death", "events.NAME") for risks in ("acute", "relative_risk")},
}
# Tables of the same kind that the page writes out in one row.
IN_ONE_ROW = {"utility.weights", "utility.costs", "capacity"}
IN_ONE_ROW |= {f"treatments.NAME.rules[].{operation}" for operation in ("set", "add", "multiply")}
# Read as they stand: their keys are features.
CONDITIONS = ("rules[].when", "death.acute", "events.NAME.acute", "treatments.NAME.rules[].when")
CONDITIONS += ("treatments.NAME.contraindicated[]",)
# Arrays of tables.
REPEATED = {"rules", "treatments.NAME.rules", "treatments.NAME.contraindicated"}
# What may stand in place of any number that has an interval.
INTERVAL = ("value", "interval")


STUDY, SCENARIO = PAGE.split("\n## A scenario\n")


def documented(part=PAGE):
    """The keys in the first columns of the tables of the page."""
    return re.findall(r"^\| `([^`]+)` \|", part, flags=re.MULTILINE)


def as_on_the_page(key):
    """A key path in the words of the page; None where it ends in a table that is one row."""
    if key[-1] in INTERVAL:
        return f"NUMBER.{key[-1]}"
    text = ""
    for part in key:
        if isinstance(part, int):
            text += "[]"
            continue
        if text in IN_ONE_ROW:
            return None
        text = ".".join(filter(None, (text, CHOSEN.get(text, part))))
    return f"{text}[]" if text in REPEATED else text


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Files in which every branch of the readers is taken."""
    folder = tmp_path_factory.mktemp("files")
    for name in ("features", "actions", "outcomes"):
        (folder / f"{name}.csv").write_text("patient\n1\n")
    three = '{ features = "features.csv", actions = "actions.csv", outcomes = "outcomes.csv" }'
    data = 'id = "patient"\npropensity = "p"\noutcome = { o = 1.0 }\nrange = [0, 1]\n'
    data += 'treatments = { a = "A", b = "B" }\n'
    (folder / "three.toml").write_text(
        f"[data]\nfile = {three}\n{data}[data.features]\nage = {{ cuts = [1] }}\nsex = {{ levels = [0, 1] }}\n"
    )
    return [ROOT / "policysim" / "study" / "studies" / "covid.toml", folder / "three.toml"]


@pytest.fixture(scope="module")
def asked(files):
    """The keys that readers ask for, whether a file has them or not: of studies, and of scenarios."""
    found = {STUDY: set(), SCENARIO: set()}
    with pytest.MonkeyPatch.context() as patch:
        real, numbers = Table._read, Table.numbers

        def note(table, *names):
            part = SCENARIO if table.mistakes.path.parent.name in ("scenarios", "data") else STUDY
            found[part].add(as_on_the_page((*table.key, *names)))

        def read(table, name, *rest):
            note(table, name)
            return real(table, name, *rest)

        def read_numbers(table, name, allowed, kind, **bounds):
            # Any of the allowed names, whichever the file has.
            for one in allowed:
                note(table, name, one)
            return numbers(table, name, allowed, kind, **bounds)

        patch.setattr(Table, "_read", read)
        patch.setattr(Table, "numbers", read_numbers)
        for file in files:
            load_study(file)
        load_scenario(LANGUAGE)
    # A condition is read as it stands: its keys are features, and nothing is asked for by name.
    found[SCENARIO] |= {f"{table}.FEATURE" for table in CONDITIONS}
    found[STUDY] |= {"data"}  # looked for before anything is asked
    return {part: keys - {None} for part, keys in found.items()}


@pytest.mark.parametrize("part", [STUDY, SCENARIO], ids=["studies", "scenarios"])
def test_every_key_is_on_the_page_and_every_key_of_the_page_is_read(asked, part):
    names = documented(part)
    assert len(names) == len(set(names))
    assert asked[part] == set(names)


def literals(path):
    """The keys that a reader's source asks for by name: of a Table, or through a helper that takes the Table first."""
    methods = {"text", "number", "integer", "numbers", "list_of", "table", "tables"}
    helpers = {"_column", "_choice", "_path", "_read_features"}
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute):
                given = node.args[:1] if node.func.attr in methods else []
            else:
                given = node.args[1:2] if getattr(node.func, "id", "") in helpers else []
            yield from (each.value for each in given if isinstance(each, ast.Constant))
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In) and isinstance(node.left, ast.Constant):
            yield node.left.value


@pytest.mark.parametrize("reader", READERS)
def test_no_branch_asks_for_a_key_that_the_page_lacks(reader):
    """Also of keys that the files of these tests do not reach."""
    asked = set(literals(ROOT / reader)) - {"analysis"}
    assert asked
    assert asked <= {name.rpartition(".")[2].removesuffix("[]") for name in documented()}


@pytest.mark.parametrize(
    ("table", "known"),
    [
        ("privacy", "adjacency, epsilon, epsilons, hidden_from, public, sensitive"),
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
