"""Where pages come from: the templates of the package, escaped, with filters for numbers."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined

from policysim import words
from policysim.report.shown import FILTERS


def page_environment() -> Environment:
    """Templates of policysim; what is inserted is escaped, and a name that is missing is an error."""
    environment = Environment(
        loader=PackageLoader("policysim"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_tied,
    )
    environment.filters.update(FILTERS, named=words.level_name)
    return environment


def _tied(value: object) -> object:
    """Text in which "ε = 1" is never broken into two lines; markup and numbers as they are."""
    return value.replace(" = ", "\u00a0=\u00a0") if type(value) is str else value
