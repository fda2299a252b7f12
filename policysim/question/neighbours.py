"""Whether `envs` and `policies` are the packages of policysim: PyPI has others, and so may a folder of one's own.

Looked up without importing them, which would take longer than everything else that `import policysim` does.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

# How our packages begin, and no others.
OPENINGS = {"envs": '"""The patients: ', "policies": '"""The private choice: '}


def refuse_others(house: str) -> None:
    """ImportError, in one line, if Python finds packages of these names that do not belong to this policysim.

    Parameters
    ----------
    house : str
        The file of the package policysim, which the two are installed beside.
    """
    for name, opening in OPENINGS.items():
        ours, found = Path(house).parents[1] / name / "__init__.py", _found(name)
        if found not in (str(ours), "", str(ours.parent)) and Path(found).resolve() != ours.resolve():
            raise ImportError(
                f"policysim needs its own package {name} ({ours}), but Python finds {found}: rename or remove that "
                "one, or give policysim an environment of its own"
            )
        if not ours.exists() or not ours.read_text(encoding="utf-8", errors="replace").startswith(opening):
            raise ImportError(
                f"policysim's own package {name} was removed or overwritten by another one ({ours}): "
                f"pip uninstall {name}, then install policysim again, in an environment of its own"
            )


def _found(name: str) -> str:
    """The file that `import name` runs or ran, or its folder if it has none; "" for no such package."""
    try:
        spec = find_spec(name)
    except ValueError:  # a module that somebody made by hand
        return f"a module {name} without a file"
    if spec is None:
        return ""
    return spec.origin or next(iter(spec.submodule_search_locations or ()), "")
