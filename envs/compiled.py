"""`envs.kernel` compiled.

Nothing but `envs.inpatients` imports this module, as numba takes a second to import, and the functions take seconds to
compile, which is kept for the next time.
"""

# mypy: ignore-errors

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from pathlib import Path

import numpy as np

njit = import_module("numba").njit
WITHIN = "_number", "_admit", "_show", "_day", "_exp_of"
CALLED = "admit", "show", "treat"


def compiled_kernel():
    """The kernel, another copy, whose functions are compiled when they are first called; and why that takes a while."""
    spec = find_spec("envs.kernel")
    kernel = module_from_spec(spec)
    spec.loader.exec_module(kernel)
    for name in WITHIN:
        setattr(kernel, name, njit(inline="always")(getattr(kernel, name)))
    kernel.dispatchers = {name: enter(kernel, name) for name in CALLED}
    folder, wait = (
        kernel.dispatchers["treat"].stats.cache_path,
        "compiling the patients' days, which takes some seconds,",
    )
    if folder is None:
        return kernel, f"{wait} in this process, as nothing can be kept on the disk."
    return kernel, "" if list(Path(folder).glob("kernel.treat*.nbi")) else f"{wait} once on this machine."


def enter(kernel, name):
    """A function of the kernel that is compiled in the first call, and then called without a look at its arguments.

    These have the same types each time. The code is kept on the disk, if there is a folder for that, and room in it.
    """
    function = getattr(kernel, name)
    function = getattr(function, "__wrapped__", function)
    try:
        dispatcher = njit(nogil=True, cache=True)(function)
    except RuntimeError:
        dispatcher = njit(nogil=True)(function)
    else:
        save = dispatcher._cache.save_overload

        def save_if_possible(*given):
            with suppress(OSError):
                save(*given)

        dispatcher._cache.save_overload = save_if_possible

    def first(*given):
        # Numba would take a number of Python's for one with a sign.
        typed = zip(function.__code__.co_varnames, given, strict=False)
        dispatcher(*(np.uint64(each) if argument == "begin" else each for argument, each in typed))
        setattr(kernel, name, dispatcher.overloads[dispatcher.signatures[0]].entry_point)

    setattr(kernel, name, first)
    return dispatcher
