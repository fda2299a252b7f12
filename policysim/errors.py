"""Exit codes, and the errors that are one line for the user: wrong usage, output that fails, a missing extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# How a run ends: a bug, a wrong command line or study file, wrong data, a check that did not hold, Ctrl-C.
EXIT_BUG, EXIT_USAGE, EXIT_DATA, EXIT_CHECK, EXIT_INTERRUPTED = 1, 2, 3, 4, 130

# What is imported: the package that has it, and the extra of pyproject.toml that names this package.
EXTRAS = {
    "dp_accounting": ("dp-accounting", "days"),
    "numba": ("numba", "fast"),
    "pyarrow": ("pyarrow", "files"),
    "sklearn": ("scikit-learn", "trials"),
    "dask": ("dask", "cluster"),
    "distributed": ("distributed", "cluster"),
}


class UsageError(Exception):
    """A request that cannot be met; str() is one line for the user."""


class OutputError(OSError):
    """Output that cannot be written; str() is one line for the user."""

    exit_code = EXIT_USAGE


class MissingExtraError(ModuleNotFoundError):
    """A package of an extra is not installed; str() is one line that says what to type."""


@contextmanager
def optional() -> Iterator[None]:
    """Import packages of an extra in such a block: if one is missing, MissingExtraError names it and its extra.

    Examples
    --------
    >>> with optional():
    ...     raise ModuleNotFoundError("No module named 'sklearn'", name="sklearn")
    Traceback (most recent call last):
    policysim.errors.MissingExtraError: this needs scikit-learn: pip install 'policysim[trials]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        found = EXTRAS.get((error.name or "").partition(".")[0])
        if found is None:
            raise
        package, extra = found
        raise MissingExtraError(f"this needs {package}: pip install 'policysim[{extra}]'", name=error.name) from None
