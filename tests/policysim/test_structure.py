"""The structure that the design promises, read from the source."""

import ast
import io
import re
import tokenize
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# The floors: a package imports only packages of rows above its own, and nothing of those beside it.
ROWS = (
    ("envs", "policies", "policysim.errors", "policysim.progress", "policysim.numbers", "policysim.words"),
    ("policysim.files", "policysim.figures", "policysim.sklearn", "policysim.utility"),
    ("policysim.logs",),
    ("policysim.study",),
    ("policysim.release", "policysim.report"),
    # The three kinds of report.
    ("policysim.course", "policysim.decision", "policysim.trials"),
    ("policysim.cli",),
    ("policysim",),
)
KINDS = {"policysim.course", "policysim.decision", "policysim.trials"}
TOPS = ("envs", "policies", "policysim")
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for top in TOPS
    for path in sorted((ROOT / top).rglob("*.py"))
}
SOURCES = [path for top in (*TOPS, "tests", "examples", "benchmarks") for path in sorted((ROOT / top).rglob("*.py"))]
# A file of code or words by its name, or any file by its path from a folder of the repository.
CITED = re.compile(r"[\w./-]*\w\.(?:py|md|js)\b|\b(?:tests|docs|policysim|envs|policies|reports)/[\w./-]*\.\w+")
PACKAGES = {name for name, path in FILES.items() if path.stem == "__init__"}


@cache
def imported(module):
    """The modules of ours that a module imports, wherever in the file."""
    return list(_imported(module))


def _imported(module):
    for node in ast.walk(ast.parse(FILES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in FILES)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                if whole in FILES:
                    yield whole
                elif node.module in FILES:
                    yield node.module
                else:
                    assert node.module.split(".")[0] not in TOPS, f"{module} imports {node.module}, which is not there"


def home(module):
    """The package of the rows that a module belongs to, and the number of its row; the whole house has the last row."""
    found = [
        (len(package), number, package)
        for number, row in enumerate(ROWS)
        for package in row
        if f"{module}.".startswith(f"{package}.")
    ]
    _, number, package = max(found)
    return number, package


def circle(graph):
    """The first circle of a graph that is found, or None."""
    done, active = set(), []

    def visit(name):
        if name in active:
            return [*active[active.index(name) :], name]
        if name in done:
            return None
        active.append(name)
        found = next(filter(None, map(visit, sorted(graph.get(name, ())))), None)
        active.pop()
        done.add(name)
        return found

    return next(filter(None, map(visit, sorted(graph))), None)


@pytest.mark.parametrize("module", FILES)
def test_a_row_imports_only_rows_above_it(module):
    number, package = home(module)
    for other in imported(module):
        row, its_package = home(other)
        assert row < number or its_package == package, f"{module} imports {other}"


def test_the_three_kinds_of_question_import_nothing_of_each_other():
    mine = {name: home(name)[1] for name in FILES if home(name)[1] in KINDS}
    assert set(mine.values()) == KINDS
    for name, kind in mine.items():
        assert {home(other)[1] for other in imported(name)} & KINDS <= {kind}, name


def test_only_the_whole_house_has_the_last_row():
    assert {name for name in FILES if home(name)[1] == "policysim"} == {"policysim", "policysim.__main__"}


def test_inside_a_row_nothing_imports_upwards():
    # A package's face hands names on; by itself it closes no circle.
    graph = {name: set(imported(name)) - PACKAGES for name in FILES if name not in PACKAGES}
    assert circle(graph) is None


def test_what_decides_proofs_knows_nothing_of_what_makes_them():
    known, new = set(), {"policies.proof"}
    while new:
        known |= new
        new = {other for name in new for other in imported(name)} - known
    assert not [name for name in known if name.startswith("policies.optimal")]
    assert "policies.problem" in known
    assert len(FILES["policies.proof"].read_text(encoding="utf-8").splitlines()) <= 200


def test_a_circle_would_be_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["b", "c", "b"]
    assert circle({"a": {"b", "c"}, "b": {"c"}}) is None


# Fields of results, found together with the others by a search.
OF_RESULTS = {("Plan", "_actions"), ("PrivateCourse", "_process"), ("PrivateCourse", "_tables")}


def private_parameters(text):
    """The class and name of each private field that `dataclasses.replace` hands on."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(each) for each in node.decorator_list):
            for field in node.body:
                private = isinstance(field, ast.AnnAssign) and ast.unparse(field.target).startswith("_")
                if private and "init=False" not in ast.unparse(field):
                    yield node.name, ast.unparse(field.target)


def test_what_an_object_fills_itself_is_no_parameter_of_its_class():
    found = {field for path in FILES.values() for field in private_parameters(path.read_text(encoding="utf-8"))}
    assert found == OF_RESULTS
    planted = "@dataclass(frozen=True)\nclass Scores:\n    _kept: dict = field(default_factory=dict)"
    assert list(private_parameters(planted)) == [("Scores", "_kept")]


def test_every_package_is_typed():
    assert all((ROOT / top / "py.typed").exists() for top in TOPS)


def test_every_public_name_can_be_loaded():
    import policysim as ps  # noqa: PLC0415

    for name in ps.__all__:
        # A package among them has the name of where it is.
        assert getattr(ps, name).__name__.rpartition(".")[2] == name
    assert set(ps.__all__) <= set(dir(ps))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ps.nothing


def said(path):
    """The comments and docstrings of a file."""
    text = path.read_text(encoding="utf-8")
    # Telling comments from text takes most of the time: only where a line could be one that cites.
    if any(CITED.search(line.partition("#")[2]) for line in text.splitlines()):
        tokens = tokenize.generate_tokens(io.StringIO(text).readline)
        yield from (token.string for token in tokens if token.type == tokenize.COMMENT)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""


def cited(words):
    """The files of ours that a text names; a file elsewhere is cited by its address."""
    return [name.strip("./") for name in CITED.findall(re.sub(r"https?://\S+", "", words))]


# The floors that know no outcome by its name, and the one module there that says which leads a scenario by default.
NAMELESS = ("policysim.study", "policysim.course", "policysim.decision", "policysim.trials", "policysim.report")
NAMELESS = (*NAMELESS, "policysim.cli")
CHOOSES_DEFAULT = "policysim.study.study_reader"
OF_DEATHS = re.compile(r"(expected_|extra_|max_extra_)?deaths?")


def named_outcomes(source):
    """What a source calls death: texts that are nothing else, and imported constants of the name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and OF_DEATHS.fullmatch(node.value):
            yield node.value
        elif isinstance(node, ast.ImportFrom):
            yield from (alias.name for alias in node.names if alias.name in {"DEATH", "DEATHS"})


def test_from_the_study_upwards_no_outcome_has_a_name():
    found = {
        module: names
        for module, path in FILES.items()
        if module.startswith(NAMELESS)
        if (names := list(named_outcomes(path.read_text(encoding="utf-8"))))
    }
    assert found == {CHOOSES_DEFAULT: ["DEATH"]}


@pytest.mark.parametrize(
    "planted", ['table["expected_deaths"]', 'f"{x}" + "death"', "from envs.scenario import DEATH", 'of(death="deaths")']
)
def test_a_planted_name_of_an_outcome_is_found(planted):
    assert len(list(named_outcomes(planted))) == 1


def test_files_that_comments_and_docstrings_cite_are_there():
    names = {path.name for path in ROOT.glob("*.md")} | {path.name for path in SOURCES}
    missing = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCES
        for words in said(path)
        for name in cited(words)
        if name not in names and not (ROOT / name).exists() and not (path.parent / name).exists()
    ]
    assert missing == []


def test_a_citation_is_found_and_an_address_is_none():
    assert cited("as in facts/seeds.md, section 3; see DESIGN.md.") == ["facts/seeds.md", "DESIGN.md"]
    assert cited("envs/scenarios/covid.toml names them; study.toml is the reader's") == ["envs/scenarios/covid.toml"]
    assert cited("https://example.org/a/b.py") == []
