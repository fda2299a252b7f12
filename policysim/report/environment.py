"""Where pages come from: the templates of the package, escaped, with filters for numbers."""

from __future__ import annotations

from collections.abc import Callable

from jinja2 import Environment, PackageLoader, StrictUndefined

from policysim import words
from policysim.report.shown import FILTERS


def page_environment(finalize: Callable[[object], object] | None = None) -> Environment:
    """Templates of policysim; what is inserted is escaped, and a name that is missing is an error.

    Parameters
    ----------
    finalize : callable, optional
        Applied to everything that is inserted.
    """
    environment = Environment(
        loader=PackageLoader("policysim"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=finalize,
    )
    environment.filters.update(FILTERS, named=words.level_name)
    return environment
