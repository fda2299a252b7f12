"""A figure written: as SVG, PNG or PDF, the same bytes for the same figure; and an SVG as a part of a page.

On a page it leaves out what the page says itself, its colours follow the theme, and it has few letters. The artists of
a policy stand in groups with the attribute data-policy; lines mark epsilon, which a script moves.
"""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import count
from typing import Any
from xml.etree import ElementTree

from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.style import context

from envs.toml_reader import one_line
from policysim.figures.lettering import no_glyph_warnings
from policysim.figures.looks import FONTS, HEAD, NAMED_COLOURS, POLICY_GID, READABLE_WIDTH, STYLE

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
    # A matplotlibrc changes nothing: neither what a report looks like, nor what is run to draw it, such as LaTeX.
    with context(STYLE, after_reset=True), no_glyph_warnings():
        figure.savefig(buffer, format=kind, **options)
    return buffer.getvalue()


@dataclass(frozen=True)
class Marker:
    """A line over one panel: where it stands at each epsilon, NaN where the axis has no place for it; in points."""

    places: tuple[float, ...]
    top: float
    bottom: float

    def line(self, position: int) -> ElementTree.Element:
        """The marker as an element of its figure; data-x lists its places, which a script moves it to."""
        places = ["-" if math.isnan(place) else f"{place:.{DECIMALS}f}" for place in self.places]
        # Where the axis has no place for epsilon, the line waits out of sight.
        here = "-9" if places[position] == "-" else places[position]
        ends = {"x1": here, "x2": here, "y1": f"{self.top:.{DECIMALS}f}", "y2": f"{self.bottom:.{DECIMALS}f}"}
        return ElementTree.Element("line", {"data-marker": "", "data-x": " ".join(places), **ends})


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


# The most CSS pixels per unit (point) of a figure for a page, and of one as narrow as a column.
LARGEST, LARGEST_NARROW = 1.4, 2.0
# As many have the words of a page, 9 points, if they are 11 pixels high.
READABLE = 11.1 / FONTS["page"]
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
# Where a panel, its background, its horizontal axis, that axis's ticks and its name are: kept in figures with markers.
_PLACES = re.compile(r"axes_\d+|matplotlib\.axis_\d+|xtick_\d+")
# What matplotlib says although it is the default, or turns nothing.
_DEFAULTS = {"stroke-dashoffset: 0", "stroke-linejoin: miter"}
_FONTS = re.compile(r"font-family: [^;]+")
_COLOUR = re.compile(r"#[0-9a-f]{6}")
# As matplotlib writes a colour, and as the page does.
VARIABLES = {colour.lower(): f"var(--c-{name},{colour.lower()})" for colour, name in NAMED_COLOURS.items()}
_POLICY = re.compile(POLICY_GID + r"\d+:(.*)", re.DOTALL)
DECIMALS = 1
_NUMBER = re.compile(r"-?\d*\.\d+(?:e-?\d+)?")
_LINE = re.compile(r"M[-\d. ]+(?:L[-\d. ]+)+")


def inline(
    svg: str,
    prefix: str,
    *,
    markers: Sequence[Marker] = (),
    position: int = 0,
    styles: dict[str, str] | None = None,
) -> Markup:
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
    styles : dict, optional
        The rules of the page's style, each with its class: those of this figure are added. A page runs and shows
        nothing that its policy (`report.deliver.content_policy`) does not name, so no element has a style of its own.

    Returns
    -------
    Markup
        Coordinates have `DECIMALS` decimals, styles are classes, and what is not drawn is left out. Each colour is
        `var(--c-NAME, #rrggbb)`, by the names of `policysim.figures.looks.NAMED_COLOURS`, whose values in light and
        dark the page's style lists. What belongs to one policy stands in `<g data-policy="NAME">`.
    """
    root = _parsed(svg)
    _name(root, prefix, _places(root) if markers else [])
    _shorten(root)
    styles = {} if styles is None else styles
    _classes(root, prefix, styles)
    _flatten(root)
    # The size comes from the page, up to a limit; where words would be too small to read, the page lets it scroll.
    width = float(root.attrib["viewBox"].split()[2])
    for name in ("width", "height", "version", "xmlns", "role"):
        root.attrib.pop(name, None)
    narrow = width <= 72 * READABLE_WIDTH
    least = "" if narrow else f";--least:{width * READABLE:.0f}px"
    size = f"max-width:{width * (LARGEST_NARROW if narrow else LARGEST):.0f}px{least}"
    root.set("class", styles.setdefault(size, f"{prefix}_{len(styles)}"))
    root.extend([marker.line(position) for marker in markers])
    return Markup(ElementTree.tostring(root, encoding="unicode", short_empty_elements=True).replace(" />", "/>"))


def _parsed(svg: str) -> ElementTree.Element:
    """The SVG without namespaces and without what the page says itself; groups of a policy say of which."""
    root = ElementTree.fromstring(svg)
    for element in list(root.iter()):
        element.tag = element.tag.rpartition("}")[2]
        for name in list(element.attrib):
            element.set(name.rpartition("}")[2], element.attrib.pop(name))
        policy = _POLICY.fullmatch(element.get("id", ""))
        if policy:
            del element.attrib["id"]
            element.set("data-policy", policy[1])
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in ("metadata", "style", "title", "desc") or child.get("id") == HEAD:
                parent.remove(child)
    return root


def _places(root: ElementTree.Element) -> list[str]:
    """The identifiers of the groups that say where epsilon is: panels, their backgrounds, axes, ticks and names."""
    panels = [element for element in root.iter("g") if element.get("id", "").startswith("axes_")]
    # The axis on top of a panel is drawn within it.
    on_top = {id(part) for panel in panels for inner in panel.iter("g") if inner in panels[1:] and inner is not panel
              for part in inner.iter()}  # fmt: skip
    kept = []
    for element in root.iter():
        name = element.get("id", "")
        if id(element) in on_top:
            continue
        if _PLACES.fullmatch(name):
            kept.append(name)
        if name.startswith(("axes_", "matplotlib.axis_")):
            part = "patch_" if name.startswith("axes_") else "text_"
            kept += [child.attrib["id"] for child in element if child.get("id", "").startswith(part)][:1]
    return kept


def _name(root: ElementTree.Element, prefix: str, kept: Sequence[str]) -> None:
    """Short identifiers, only for what is kept or referred to; they begin with the prefix.

    What is drawn again and again has one: of markers and ticks that are the same, the first stays.
    """
    first: dict[tuple[str, str], str] = {}
    same: dict[str, str] = {}
    for parent in root.iter("defs"):
        for path in parent.findall("path"):
            known = first.setdefault((path.get("d", ""), path.get("style", "")), path.get("id", ""))
            if known != path.get("id", ""):
                same[path.get("id", "")] = known
                parent.remove(path)
    names = {name: f"{prefix}-{name}" for name in kept}
    for element in root.iter():
        for name, value in element.attrib.items():
            for used in [value[1:]] if name == "href" else _REFERENCE.findall(value):
                names.setdefault(same.get(used, used), f"{prefix}-{len(names)}")
    for element in root.iter():
        short = names.get(element.attrib.pop("id", ""))
        if short is not None:
            element.set("id", short)
        for name, value in element.attrib.items():
            if name == "href":
                element.set(name, f"#{names[same.get(value[1:], value[1:])]}")
            elif "url(#" in value:
                element.set(name, _REFERENCE.sub(lambda match: f"url(#{names[match[1]]})", value))


def _classes(root: ElementTree.Element, prefix: str, styles: dict[str, str]) -> None:
    """Styles become classes; those that are new join the mapping from each rule to the name of its class."""
    for element in root.iter():
        own = [f"{name}: {element.attrib.pop(name)}" for name in ("fill", "stroke") if name in element.attrib]
        style = "; ".join([*own, *filter(None, [element.attrib.pop("style", "")])])
        kept = [part for part in _FONTS.sub("", style).split("; ") if part.strip("; ") and part not in _DEFAULTS]
        rule = _COLOUR.sub(
            lambda match: VARIABLES.get(match[0], match[0]),
            ";".join(part.strip("; ").replace(": ", ":") for part in kept),
        )
        if rule:
            element.set("class", styles.setdefault(rule, f"{prefix}_{len(styles)}"))


def _flatten(parent: ElementTree.Element) -> None:
    """Groups without attributes give way to what they hold, empty ones vanish, and those of a policy in a row join."""
    children: list[ElementTree.Element] = []
    for child in list(parent):
        _flatten(child)
        for part in list(child) if child.tag == "g" and not child.attrib else [child]:
            if part.attrib.keys() == {"data-policy"} and children and children[-1].attrib == part.attrib:
                children[-1].extend(list(part))
            elif part.tag not in ("g", "defs") or len(part):
                children.append(part)
    parent[:] = children


def _shorten(root: ElementTree.Element) -> None:
    """Short numbers, and no white space between elements."""
    for element in root.iter():
        for name in ("d", "x", "y", "width", "height", "transform"):
            if name in element.attrib:
                element.set(name, _NUMBER.sub(_rounded, element.attrib[name]))
        if "d" in element.attrib:
            path = re.sub(r"\s*([A-Za-z])\s*", r"\1", element.attrib["d"]).strip()
            # After the start of a line, a point needs no letter.
            element.set("d", _LINE.sub(lambda match: match[0].replace("L", " "), path))
        if re.fullmatch(r"rotate\(-?0 .*\)", element.get("transform", "")):
            del element.attrib["transform"]
        element.tail = None if not (element.tail or "").strip() else element.tail
        element.text = None if not (element.text or "").strip() else element.text


def _rounded(number: re.Match[str]) -> str:
    shorter = f"{float(number[0]):.{DECIMALS}f}".rstrip("0").rstrip(".")
    return "0" if shorter == "-0" else shorter
