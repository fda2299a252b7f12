"""Figures as files: SVG, PNG and PDF, the same bytes for the same figure."""

from __future__ import annotations

import io
import re
from html import escape
from itertools import count
from typing import Any

from matplotlib.figure import Figure
from matplotlib.style import context

from envs.toml_reader import one_line
from policysim.figures.lettering import no_glyph_warnings
from policysim.figures.looks import POLICY_GID, STYLE

LEAST_DOTS = 200  # per inch
LEAST_WIDTH = 1920  # pixels
SMALL = 3.34  # inches: what is narrower than a column of a journal is a small picture on a screen


def to_svg(figure: Figure, *, title: str = "", description: str = "") -> str:
    """The figure as SVG with real text.

    Parameters
    ----------
    figure : Figure
        What to draw.
    title, description : str, optional
        For readers who cannot see it: its `<title>` and `<desc>`.
    """
    empty = dict.fromkeys(["Date", "Creator", "Format", "Type"])
    numbers = count(1)
    # What belongs to a policy is drawn piece by piece; an identifier stands once.
    # Names made in Python may hold what no XML can.
    drawn = one_line(_saved(figure, "svg", metadata=empty).decode(), but="\n")
    svg = re.sub(f'id="{POLICY_GID}', lambda _: f'id="{POLICY_GID}{next(numbers)}:', drawn)
    words = [
        f"<{tag}>{escape(text, quote=False)}</{tag}>" for tag, text in (("title", title), ("desc", description)) if text
    ]
    end = svg.index(">", svg.index("<svg")) + 1
    role = ' role="img"' if words else ""
    return svg[: end - 1] + role + ">" + "".join(f"\n {line}" for line in words) + svg[end:]


def to_png(figure: Figure) -> bytes:
    """The figure as PNG, at least 200 dots per inch and 1,920 pixels wide, but for small figures."""
    width = figure.get_figwidth()
    dots = LEAST_DOTS if width < SMALL else max(LEAST_DOTS, LEAST_WIDTH / width)
    return _saved(figure, "png", dpi=dots, metadata={"Software": None})


def to_pdf(figure: Figure) -> bytes:
    """The figure as PDF, its fonts embedded as outlines that can be searched and edited."""
    return _saved(figure, "pdf", metadata={"CreationDate": None})


def _saved(figure: Figure, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    with context(STYLE), no_glyph_warnings():
        figure.savefig(buffer, format=kind, **options)
    return buffer.getvalue()
