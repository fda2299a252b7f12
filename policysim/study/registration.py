"""Registers the environments with Gymnasium, without importing it: that takes longer than everything else here.

If Gymnasium is imported already, `register` registers at once. If not, nobody can have asked it for an environment yet,
and an import hook does it as soon as Gymnasium has been imported, then takes itself away.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

TREATMENT = "policysim/Treatment-v0"
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

    if TREATMENT not in registry:
        register_environment(
            id=TREATMENT,
            entry_point="envs.treatment:TreatmentEnv",
            vector_entry_point="envs.treatment_vector:TreatmentVectorEnv",
        )


class _Hook:
    """Finds Gymnasium as the other finders do, and has it registered with after its import."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Where Gymnasium is; nothing for all other modules, which the other finders look for."""
        if fullname != GYMNASIUM:
            return None
        for finder in sys.meta_path:
            if not _is_hook(finder):
                spec = finder.find_spec(fullname, path, target)
                if spec is not None:
                    if spec.loader is not None:
                        spec.loader = _Loader(spec.loader)  # type: ignore[assignment]  # has what importing needs
                    return spec
        return None


class _Loader:
    """Loads as another loader does, and registers; to the module it looks as if the other had loaded it.

    This is how `importlib.util.LazyLoader` of the standard library stands in for a loader.
    """

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """The other loader's module."""
        module: ModuleType | None = self._loader.create_module(spec)
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, take the hook away, and register."""
        assert module.__spec__ is not None
        module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        sys.meta_path[:] = [finder for finder in sys.meta_path if not _is_hook(finder)]
        _register_now()


def _is_hook(finder: object) -> bool:
    """Whether it is a hook of this module, or of an earlier copy of this module that was imported anew."""
    return (type(finder).__module__, type(finder).__name__) == (__name__, _Hook.__name__)
