"""What only some questions need is installed by an extra, and a missing part is one line with exit code 2."""

import ast
import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import SimpleNamespace

import pytest

import policysim as ps
from policysim.errors import EXTRAS, MissingExtraError, optional
from policysim.report.folder import LIBRARIES, versions_of

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
# Runs a program as if the packages of all extras were not installed.
WITHOUT = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {set(EXTRAS)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
"""


def named(requirements):
    return {line.partition(">")[0].partition("[")[0].strip() for line in requirements}


def without(script):
    return subprocess.run([sys.executable, "-c", WITHOUT + script], capture_output=True, text=True, check=False)


def test_each_package_is_in_the_extra_that_the_message_names_and_not_required():
    for package, extra in EXTRAS.values():
        assert package in named(PROJECT["optional-dependencies"][extra])
        assert package not in named(PROJECT["dependencies"])


def test_all_installs_every_extra_that_a_user_may_want():
    (everything,) = PROJECT["optional-dependencies"]["all"]
    inside = everything.partition("[")[2].rstrip("]").split(",")
    assert {extra for _, extra in EXTRAS.values()} == set(inside)


def imports_outside(tree):
    """Imports of optional packages that no `with optional():` surrounds."""
    inside = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.With) and ast.unparse(block.items[0].context_expr) == "optional()"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        if id(node) not in inside:
            yield from (name for name in names if name.partition(".")[0] in EXTRAS)


@pytest.mark.parametrize("top", ["envs", "policies", "policysim"])
def test_optional_packages_are_only_imported_where_a_missing_one_is_told(top):
    outside = {
        str(path.relative_to(ROOT)): names
        for path in (ROOT / top).rglob("*.py")
        if (names := list(imports_outside(ast.parse(path.read_text(encoding="utf-8")))))
    }
    assert outside == {}


def test_an_import_outside_would_be_found():
    tree = ast.parse("with optional():\n    import pyarrow\nfrom sklearn.svm import SVC\nimport numpy, pyarrow.csv")
    assert list(imports_outside(tree)) == ["sklearn.svm", "pyarrow.csv"]


def test_what_is_missing_and_no_extra_stays_as_it_is():
    with pytest.raises(ModuleNotFoundError, match="No module named 'nothing_at_all'") as error, optional():
        import nothing_at_all  # noqa: F401, PLC0415
    assert not isinstance(error.value, MissingExtraError)


def test_a_command_names_what_to_install_in_one_line():
    arguments = ["select", "counts.csv", "--score", "people", "--epsilon", "1"]
    done = without(f"from policysim.cli.main import main\nsys.exit(main({arguments!r}))")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "policysim: this needs pyarrow: pip install 'policysim[files]'\n"


def test_a_choice_that_is_made_of_no_log_needs_no_extra():
    arguments = ["choose", str(ROOT / "examples" / "ward" / "study.toml"), "--keep", "50%"]
    done = without(f"from policysim.cli.main import main\nsys.exit(main({arguments!r}))")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Choose B" in done.stdout


def test_python_names_it_too_and_tables_need_no_extra():
    done = without(
        "import numpy as np\n"
        "import policysim as ps\n"
        "problem = ps.DecisionProblem(np.eye(2), np.ones(2) / 2, ps.AnyRecord())\n"
        "print(len(ps.compare(problem, policies=['optimal'], epsilons=[1])))\n"
        "from policysim.decision.report import report as report_decision\n"
        "from policysim.course.days_report import report\n"
        "from policysim.decision import audit_words, choose_report\n"
        "print(ps.PrivacyBudget(7.0).daily_epsilon(14))\n"
        "try: ps.PrivacyBudget(7.0, 1e-6).daily_epsilon(14)\n"
        "except ImportError as error: print(error)\n"
    )
    assert done.stderr == ""
    *_, budget, told = done.stdout.splitlines()
    assert (float(budget), told) == (0.5, "this needs dp-accounting: pip install 'policysim[days]'")


def test_randomised_response_is_reached_through_the_one_name():
    assert ps.local.TwoCoin(0.5, 0.5).epsilon > 0


def test_a_manifest_names_the_libraries_that_are_installed_and_no_others(monkeypatch):
    def version(name):
        if name == "matplotlib":
            raise PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setitem(versions_of.__globals__, "version", version)
    versions = versions_of(SimpleNamespace(packages={"plug-in": "2.0"}))
    assert set(versions) == {"python", "plug-in", *LIBRARIES} - {"matplotlib"}
