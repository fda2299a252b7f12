"""Packages that add mechanisms: built by a build backend of their own, installed by pip or unpacked; no network."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

BACKEND = '''\
"""The least build backend (PEP 517): a wheel of all modules beside it."""

import zipfile
from pathlib import Path

NAME, VERSION = "{name}", "1.2"
ENTRIES = """{entries}"""


def build_wheel(folder, config_settings=None, metadata_directory=None):
    stem = f"{{NAME.replace('-', '_')}}-{{VERSION}}"
    info = f"{{stem}}.dist-info"
    files = {{path.name: path.read_text() for path in Path.cwd().glob("*.py") if path.name != "backend.py"}}
    files |= {{
        f"{{info}}/METADATA": f"Metadata-Version: 2.1\\nName: {{NAME}}\\nVersion: {{VERSION}}\\n",
        f"{{info}}/WHEEL": "Wheel-Version: 1.0\\nGenerator: toy\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
        f"{{info}}/entry_points.txt": f"[policysim.policies]\\n{{ENTRIES}}\\n",
    }}
    record = "".join(f"{{name}},,\\n" for name in [*files, f"{{info}}/RECORD"])
    with zipfile.ZipFile(Path(folder) / f"{{stem}}-py3-none-any.whl", "w") as wheel:
        for name, text in {{**files, f"{{info}}/RECORD": record}}.items():
            wheel.writestr(name, text)
    return f"{{stem}}-py3-none-any.whl"
'''
PYPROJECT = """\
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
COIN = '''\
import numpy as np

from policies.policy import Policy


class Coin(Policy):
    """The best treatment, more often than any other by a factor of e^(ε/2)."""

    name = "toy-coin"
    uses_prior = False

    def _log_probabilities(self, problem):
        logs = np.full(problem.utilities.shape, -self.epsilon / 2)
        logs[np.arange(problem.n_records), problem.best_actions] = 0.0
        return logs - np.logaddexp.reduce(logs, axis=1)[:, None]


class Liar(Coin):
    """What reveals twice what it claims."""

    name = "toy-liar"

    def _log_probabilities(self, problem):
        return Coin(4 * self.epsilon).log_probabilities(problem)


class Crooked(Coin):
    """What gives no probabilities."""

    name = "toy-crooked"

    def _log_probabilities(self, problem):
        return super()._log_probabilities(problem) - 0.1
'''


def install(folder: Path, name: str, entries: dict[str, str], modules: dict[str, str]) -> Path:
    """Write a package, build it and install it with pip; returns the folder to put on PYTHONPATH."""
    source, target = _source(folder, name, entries, modules), folder / "installed"
    options = ["--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "install", *options, "--target", str(target), str(source)]
    subprocess.run(command, check=True, capture_output=True)
    return target


def unpack(folder: Path, name: str, entries: dict[str, str], modules: dict[str, str]) -> Path:
    """As `install`, with the wheel unpacked in the place of pip, which takes seconds."""
    source, target = _source(folder, name, entries, modules), folder / "installed"
    script = f"import backend; backend.build_wheel({str(folder)!r})"
    subprocess.run([sys.executable, "-S", "-c", script], check=True, capture_output=True, cwd=source)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as files:
        files.extractall(target)
    return target


def _source(folder: Path, name: str, entries: dict[str, str], modules: dict[str, str]) -> Path:
    """The folder of the package's source."""
    source = folder / "source"
    source.mkdir(parents=True)
    listed = "\n".join(f"{entry} = {value}" for entry, value in entries.items())
    (source / "backend.py").write_text(BACKEND.format(name=name, entries=listed))
    (source / "pyproject.toml").write_text(PYPROJECT)
    for module, text in modules.items():
        (source / f"{module}.py").write_text(text)
    return source


def run(installed: Path | tuple[Path, ...], *command: str) -> subprocess.CompletedProcess:
    """Run Python with an installed package beside policysim, or with several."""
    folders = installed if isinstance(installed, tuple) else (installed,)
    path = os.pathsep.join(filter(None, [*map(str, folders), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run([sys.executable, *command], capture_output=True, text=True, env=environment, check=False)
