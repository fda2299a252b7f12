"""Packages that only some questions need: what is missing, and the extra that installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# What is imported: the package that has it, and the extra of pyproject.toml that names this package.
EXTRAS = {
    "dp_accounting": ("dp-accounting", "days"),
    "numba": ("numba", "fast"),
    "pyarrow": ("pyarrow", "files"),
    "sklearn": ("scikit-learn", "trials"),
    "dask": ("dask", "cluster"),
    "distributed": ("distributed", "cluster"),
}


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
    policysim.question.extras.MissingExtraError: this needs scikit-learn: pip install 'policysim[trials]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        found = EXTRAS.get((error.name or "").partition(".")[0])
        if found is None:
            raise
        package, extra = found
        raise MissingExtraError(f"this needs {package}: pip install 'policysim[{extra}]'", name=error.name) from None
