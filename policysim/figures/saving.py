"""Figures as files, the same bytes for the same figure; and as parts of a page, with lines that mark epsilon."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.style import context

from policysim.figures.lettering import no_glyph_warnings
from policysim.figures.looks import STYLE

LEAST_DOTS = 200  # per inch
LEAST_WIDTH = 1920  # pixels
SMALL = 3.4  # inches: what is narrower than a column of a journal is a small picture on a screen


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
    svg = _saved(figure, "svg", metadata=empty).decode()
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


# CSS pixels per unit (point) of a figure: labels of 9 points stay readable on a telephone, and small on a screen.
SMALLEST, LARGEST = 1.0, 1.4
DECIMALS = 2
_NUMBER = re.compile(r"-?\d*\.\d+(?:e-?\d+)?")
_LINE = re.compile(r"M[-\d. ]+(?:L[-\d. ]+)+")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
# Where a panel, its background, its horizontal axis, that axis's ticks and its name are: kept in figures with markers.
_PLACES = re.compile(r"axes_\d+|matplotlib\.axis_\d+|xtick_\d+")
# What matplotlib says although it is the default, or turns nothing.
_DEFAULTS = {"stroke-dashoffset: 0", "stroke-linejoin: miter"}
_FONTS = re.compile(r"font-family: [^;]+")


def inline(svg: str, prefix: str, *, markers: Sequence[Marker] = (), position: int = 0) -> Markup:
    """An SVG file as a part of a page.

    Parameters
    ----------
    svg : str
        As `policysim.figures.to_svg` writes it.
    prefix : str
        Makes its identifiers and classes distinct from those of other figures.
    markers : sequence of Marker, optional
        Drawn as lines with the attribute data-marker; data-x lists their places, which a script moves them to.
    position : int, optional
        Which place they take first.

    Returns
    -------
    Markup
        Coordinates have `DECIMALS` decimals, styles are classes, and what is not drawn is left out.
    """
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for name in list(element.attrib):
            element.set(name.rpartition("}")[2], element.attrib.pop(name))
    # The page itself says what a figure is.
    for tag in ("metadata", "style", "title", "desc"):
        _remove(root, tag)
    _name(root, prefix, _places(root) if markers else [])
    _shorten(root)
    styles = _classes(root, prefix)
    _gather(root)
    _flatten(root)
    _frame(root)
    for marker in markers:
        root.append(marker_line(marker, position, DECIMALS))
    rules = "".join(f".{name}{{{rule}}}" for rule, name in styles.items())
    body = ElementTree.tostring(root, encoding="unicode", short_empty_elements=True)
    return Markup(body.replace(" />", "/>").replace(">", f"><style>{rules}</style>", 1))


def _remove(root: ElementTree.Element, tag: str) -> None:
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag == tag]:
            parent.remove(child)


def _shorten(root: ElementTree.Element) -> None:
    """Short numbers, and no white space between elements."""
    for element in root.iter():
        for name in ("d", "x", "y", "width", "height", "transform"):
            if name in element.attrib:
                element.set(name, _rounded(element.attrib[name]))
        if "d" in element.attrib:
            path = re.sub(r"\s*([A-Za-z])\s*", r"\1", element.attrib["d"]).strip()
            # After the start of a line, a point needs no letter.
            element.set("d", _LINE.sub(lambda match: match[0].replace("L", " "), path))
        if re.fullmatch(r"rotate\(-?0 .*\)", element.get("transform", "")):
            del element.attrib["transform"]
        element.tail = None if not (element.tail or "").strip() else element.tail
        element.text = None if not (element.text or "").strip() else element.text


def _places(root: ElementTree.Element) -> list[str]:
    """The identifiers of the groups that say where epsilon is: panels, their backgrounds, axes, ticks and names."""
    kept = [element.attrib["id"] for element in root.iter() if _PLACES.fullmatch(element.get("id", ""))]
    for element in root.iter():
        part = "patch_" if element.get("id", "").startswith("axes_") else "text_"
        if element.get("id", "").startswith(("axes_", "matplotlib.axis_")):
            kept += [child.attrib["id"] for child in element if child.get("id", "").startswith(part)][:1]
    return kept


def _name(root: ElementTree.Element, prefix: str, kept: Sequence[str]) -> None:
    """Short identifiers, only for what is kept or referred to; they begin with the prefix."""
    names = {name: f"{prefix}-{name}" for name in kept}
    for element in root.iter():
        for name, value in element.attrib.items():
            for used in [value[1:]] if name == "href" else _REFERENCE.findall(value):
                names.setdefault(used, f"{prefix}-{len(names)}")
    for element in root.iter():
        known = names.get(element.attrib.pop("id", ""))
        if known is not None:
            element.set("id", known)
        for name, value in element.attrib.items():
            if name == "href":
                element.set(name, f"#{names[value[1:]]}")
            elif "url(#" in value:
                element.set(name, _REFERENCE.sub(lambda match: f"url(#{names[match[1]]})", value))


def _rounded(text: str) -> str:
    def shorter(match: re.Match[str]) -> str:
        number = f"{float(match[0]):.{DECIMALS}f}".rstrip("0").rstrip(".")
        return "0" if number == "-0" else number

    return _NUMBER.sub(shorter, text)


def _classes(root: ElementTree.Element, prefix: str) -> Mapping[str, str]:
    """Styles become classes; the mapping is from each rule to the name of its class."""
    styles: dict[str, str] = {}
    for element in root.iter():
        style = element.attrib.pop("style", "")
        kept = [part for part in _FONTS.sub("", style).split("; ") if part.strip("; ") and part not in _DEFAULTS]
        rule = ";".join(part.strip("; ").replace(": ", ":") for part in kept)
        if rule:
            element.set("class", styles.setdefault(rule, f"{prefix}_{len(styles)}"))
    return styles


def _gather(root: ElementTree.Element) -> None:
    """The markers of a line have one look, which their group can say for all."""
    for group in root.iter("g"):
        looks = {child.get("class", "") for child in group}
        if len(group) > 1 and len(looks) == 1 and "" not in looks and {child.tag for child in group} == {"use"}:
            group.set("class", looks.pop())
            for child in group:
                child.attrib.pop("class", None)


def _flatten(parent: ElementTree.Element) -> None:
    """Groups without attributes give way to what they hold, and empty ones vanish."""
    children: list[ElementTree.Element] = []
    for child in list(parent):
        _flatten(child)
        if child.tag == "g" and not child.attrib:
            children += list(child)
        elif child.tag not in ("g", "defs") or len(child):
            children.append(child)
    parent[:] = children


def _frame(root: ElementTree.Element) -> None:
    """The size comes from the page: within limits at which the labels can be read."""
    width = float(root.attrib["viewBox"].split()[2])
    for name in ("width", "height", "version", "xmlns", "role"):
        root.attrib.pop(name, None)
    root.set("style", f"min-width:{width * SMALLEST:.0f}px;max-width:{width * LARGEST:.0f}px")


@dataclass(frozen=True)
class Marker:
    """A line over one panel: where it stands at each epsilon, NaN where the axis has no place for it; in points."""

    places: tuple[float, ...]
    top: float
    bottom: float


def epsilon_markers(figure: Figure, epsilons: Sequence[float]) -> list[Marker]:
    """A marker for each panel of a laid-out figure whose horizontal axis is epsilon, on a log scale.

    Parameters
    ----------
    figure : Figure
        Already drawn once, so that its panels are where they stay.
    epsilons : sequence of float
        Where the markers can stand.
    """
    width, height = 72 * figure.get_figwidth(), 72 * figure.get_figheight()
    to_figure = figure.transFigure.inverted()
    markers = []
    for axes in figure.axes:
        if axes.get_xscale() != "log":
            continue
        low, high = sorted(axes.get_xlim())
        places = [
            float(to_figure.transform(axes.transData.transform((epsilon, 1.0)))[0]) * width
            if low <= epsilon <= high
            else math.nan
            for epsilon in epsilons
        ]
        box = axes.get_position()
        markers.append(Marker(tuple(places), height * (1 - box.y1), height * (1 - box.y0)))
    return markers


def marker_line(marker: Marker, position: int, decimals: int) -> ElementTree.Element:
    """The marker as an element of its figure; data-x lists its places, which a script moves it to."""
    places = ["-" if math.isnan(place) else f"{place:.{decimals}f}" for place in marker.places]
    here = places[position]
    # Where the axis has no place for epsilon, the line waits out of sight.
    return ElementTree.Element(
        "line",
        {
            "data-marker": "",
            "data-x": " ".join(places),
            "x1": "-9" if here == "-" else here,
            "x2": "-9" if here == "-" else here,
            "y1": f"{marker.top:.{decimals}f}",
            "y2": f"{marker.bottom:.{decimals}f}",
        },
    )
