"""`import policysim` says in one line that another package took the name of one of its own."""

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from policysim.study.registration import OPENINGS, refuse_others

ROOT = Path(__file__).parents[3]


def house(folder, **openings):
    """A policysim in a folder, with what its neighbours say of themselves; returns its file."""
    for name, text in {**OPENINGS, **openings}.items():
        if text is not None:
            (folder / name).mkdir(parents=True)
            (folder / name / "__init__.py").write_text(text)
    return str(folder / "policysim" / "__init__.py")


def one_line(error):
    text = str(error.value)
    assert "\n" not in text
    return text


def test_our_own_neighbours_are_taken():
    refuse_others(str(ROOT / "policysim" / "__init__.py"))


@pytest.mark.parametrize("name", OPENINGS)
def test_another_package_found_first_is_named_with_its_path(tmp_path, name):
    (tmp_path / name).mkdir()
    (tmp_path / name / "__init__.py").write_text("")
    script = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import policysim"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert last.startswith(f"ImportError: policysim needs its own package {name} (")
    assert f"Python finds {tmp_path / name / '__init__.py'}: rename or remove" in last


def test_a_folder_without_python_files_takes_nothing(tmp_path):
    (tmp_path / "envs").mkdir()
    script = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import policysim"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("text", ['"""Environment variables."""\n', None])
def test_a_package_installed_over_ours_or_removed_with_ours_is_told(tmp_path, monkeypatch, text):
    file = house(tmp_path, policies=text)
    found = SimpleNamespace(origin=str(tmp_path / "policies" / "__init__.py"))
    monkeypatch.setattr("policysim.study.registration.find_spec", lambda name: found if name == "policies" else None)
    with pytest.raises(ImportError) as error:
        refuse_others(file)
    assert "package policies was removed or overwritten" in one_line(error)
    assert "pip uninstall policies" in one_line(error)


def test_a_module_made_by_hand_is_told(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "envs", type(sys)("envs"))
    with pytest.raises(ImportError) as error:
        refuse_others(house(tmp_path))
    assert "Python finds a module envs without a file" in one_line(error)
