"""What `import policysim` does at once: it makes sure of its neighbours, and registers the environments with Gymnasium.

`envs` and `policies` must be the packages of policysim: PyPI has others, and so may a folder of one's own. They are
looked up, and not imported, which would take longer than everything else here; so would Gymnasium. If that is imported
already, `register` registers at once. If not, nobody can have asked it for an environment yet, and an import hook does
it as soon as Gymnasium has been imported, then takes itself away. Gymnasium looks for no entry points, so nothing
simpler makes `gymnasium.make("policysim/Treatment-v1")` work in either order of imports;
`gymnasium.make("policysim:policysim/Treatment-v1")` imports this package by itself.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

# Each by what makes the environment of one patient and of many.
ENVIRONMENTS = {
    "policysim/Treatment-v1": (
        "policysim.study.environment:treatment_env",
        "policysim.study.environment:treatment_vector_env",
    ),
}
GYMNASIUM = "gymnasium"
HOOK = "registers_policysim"
# How our packages begin, and no others.
OPENINGS = {"envs": '"""The patients: ', "policies": '"""The private draw: '}


def refuse_others(house: str) -> None:
    """ImportError, in one line, if Python finds packages of these names that do not belong to this policysim.

    Parameters
    ----------
    house : str
        The file of the package policysim, which the two are installed beside.
    """
    for name, opening in OPENINGS.items():
        ours = Path(house).parents[1] / name / "__init__.py"
        try:
            spec = find_spec(name)
        except ValueError:  # a module that somebody made by hand
            found = f"a module {name} without a file"
        else:
            # The file that `import` runs, or its folder if it has none.
            found = "" if spec is None else spec.origin or next(iter(spec.submodule_search_locations or ()), "")
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


def register() -> None:
    """Register the environments, now or when Gymnasium gets imported; again does nothing."""
    if sys.modules.get(GYMNASIUM) is not None:
        _register_now()
    elif not any(hasattr(finder, HOOK) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Hook())


def _register_now() -> None:
    from gymnasium.envs.registration import register as register_environment  # noqa: PLC0415 - see above
    from gymnasium.envs.registration import registry  # noqa: PLC0415

    for name, (one, many) in ENVIRONMENTS.items():
        if name not in registry:
            register_environment(id=name, entry_point=one, vector_entry_point=many)


class _Hook:
    """Finds Gymnasium as the other finders do, and registers after its import."""

    # Tells it from other finders, as does that of an earlier copy of this module that was imported anew.
    registers_policysim = True

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where Gymnasium is; nothing for all other modules, which the other finders look for."""
        if fullname != GYMNASIUM:
            return None
        others = [finder for finder in sys.meta_path if not hasattr(finder, HOOK)]
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            loader, load = spec.loader, spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                del loader.exec_module  # the class has its own
                load(module)
                sys.meta_path[:] = [finder for finder in sys.meta_path if not hasattr(finder, HOOK)]
                _register_now()

            loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec
