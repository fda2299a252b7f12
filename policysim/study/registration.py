"""Registers the environments with Gymnasium, without importing it: that takes longer than everything else here.

If Gymnasium is imported already, `register` registers at once. If not, nobody can have asked it for an environment yet,
and an import hook does it as soon as Gymnasium has been imported, then takes itself away. Gymnasium looks for no entry
points, so nothing simpler makes `gymnasium.make("policysim/Treatment-v0")` work in either order of imports;
`gymnasium.make("policysim:policysim/Treatment-v0")` imports this package by itself.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

# Each by the modules of the environment of one patient and of many.
ENVIRONMENTS = {
    "policysim/Treatment-v0": ("envs.treatment:TreatmentEnv", "envs.treatment_vector:TreatmentVectorEnv"),
    "policysim/Treatment-v1": ("envs.treatment_v1:TreatmentEnvV1", "envs.treatment_v1:TreatmentVectorEnvV1"),
}
GYMNASIUM = "gymnasium"


def register() -> None:
    """Register the environments, now or when Gymnasium gets imported; again does nothing."""
    if sys.modules.get(GYMNASIUM) is not None:
        _register_now()
    elif not any(_is_hook(finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Hook())


def _register_now() -> None:
    from gymnasium.envs.registration import register as register_environment  # noqa: PLC0415 - see above
    from gymnasium.envs.registration import registry  # noqa: PLC0415

    for name, (one, many) in ENVIRONMENTS.items():
        if name not in registry:
            register_environment(id=name, entry_point=one, vector_entry_point=many)
    # Gymnasium says of all versions but the last that they are out of date. Version 0 is not: it is the same patients
    # with other random numbers.
    warnings.filterwarnings("ignore", ".*policysim/Treatment-v0 is out of date", DeprecationWarning)


class _Hook:
    """Finds Gymnasium as the other finders do, and registers after its import."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where Gymnasium is; nothing for all other modules, which the other finders look for."""
        if fullname != GYMNASIUM:
            return None
        others = [finder for finder in sys.meta_path if not _is_hook(finder)]
        spec = next(filter(None, (finder.find_spec(fullname, path, target) for finder in others)), None)
        if spec is not None and spec.loader is not None:
            loader, load = spec.loader, spec.loader.exec_module

            def load_and_register(module: ModuleType) -> None:
                del loader.exec_module  # the class has its own
                load(module)
                sys.meta_path[:] = [finder for finder in sys.meta_path if not _is_hook(finder)]
                _register_now()

            loader.exec_module = load_and_register  # type: ignore[method-assign]
        return spec


def _is_hook(finder: object) -> bool:
    """Whether it is a hook of this module, or of an earlier copy of this module that was imported anew."""
    return (type(finder).__module__, type(finder).__name__) == (__name__, _Hook.__name__)
