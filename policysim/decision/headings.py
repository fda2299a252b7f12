"""What each section of a decision's page found, as its heading."""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

NONE = Markup("")


@dataclass(frozen=True)
class Headings:
    """A finding for each section of the page; empty where there is none, so that the subject is the heading."""

    policies: Markup = NONE
    patients: Markup = NONE
    groups: Markup = NONE
    parts: Markup = NONE
    events: Markup = NONE
    observer: Markup = NONE
    deaths: Markup = NONE
    prices: Markup = NONE
    model: Markup = NONE
    sensitivity: Markup = NONE
    spent: Markup = NONE
    limit: Markup = NONE
