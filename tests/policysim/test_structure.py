"""The structure that the design promises, read from the source."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = {"policysim": {"policysim", "envs", "policies"}, "envs": {"envs"}, "policies": {"policies"}}


def imported(path):
    """The full names of the modules that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def modules():
    return [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]


@pytest.mark.parametrize("path", modules(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_imports_point_down(path):
    package = path.relative_to(ROOT).parts[0]
    ours = {name.split(".")[0] for name in imported(path)} & set(PACKAGES)
    assert ours <= PACKAGES[package]


def test_no_module_imports_itself_in_a_circle():
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in modules()}
    # A package's face hands names on and a lazy one imports nothing; neither can close a circle by itself.
    graph = {
        name: {other for other in imported(path) if other in names and other != name}
        for name, path in names.items()
        if not name.endswith("__init__")
    }
    done, active = set(), []

    def visit(name):
        assert name not in active, " -> ".join([*active, name])
        if name in done:
            return
        active.append(name)
        for other in graph.get(name, ()):
            visit(other)
        active.pop()
        done.add(name)

    for name in graph:
        visit(name)


def test_each_package_says_what_its_modules_are_for():
    for package in PACKAGES:
        text = ast.get_docstring(ast.parse((ROOT / package / "__init__.py").read_text(encoding="utf-8")))
        for path in (ROOT / package).glob("*.py"):
            if not path.stem.startswith("__"):
                assert path.stem in text, f"{package}/__init__.py does not mention {path.stem}"


def test_every_package_is_typed():
    assert all((ROOT / package / "py.typed").exists() for package in PACKAGES)


def test_every_public_name_can_be_loaded():
    import policysim as ps  # noqa: PLC0415

    for name in ps.__all__:
        assert getattr(ps, name).__name__ == name
    assert set(ps.__all__) <= set(dir(ps))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ps.nothing
