"""A figure as a part of a page: an SVG without what a page says itself, in colours that follow its theme.

The artists of a policy stand in groups with the attribute data-policy; lines mark epsilon, which a script moves.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from markupsafe import Markup
from matplotlib.figure import Figure

from policysim.figures.looks import NAMED_COLOURS, POLICY_GID, READABLE_WIDTH

# The most CSS pixels per unit (point) of a figure for a page, and of one as narrow as a column.
LARGEST, LARGEST_NARROW = 1.4, 2.0
DECIMALS = 1
_NUMBER = re.compile(r"-?\d*\.\d+(?:e-?\d+)?")
_LINE = re.compile(r"M[-\d. ]+(?:L[-\d. ]+)+")
_REFERENCE = re.compile(r"url\(#([^)]+)\)")
# Where a panel, its background, its horizontal axis, that axis's ticks and its name are: kept in figures with markers.
_PLACES = re.compile(r"axes_\d+|matplotlib\.axis_\d+|xtick_\d+")
# What matplotlib says although it is the default, or turns nothing.
_DEFAULTS = {"stroke-dashoffset: 0", "stroke-linejoin: miter"}
_FONTS = re.compile(r"font-family: [^;]+")
_COLOUR = re.compile(r"#[0-9a-f]{6}")
_POLICY = re.compile(POLICY_GID + r"\d+:(.*)", re.DOTALL)


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
        The styles of other figures of the page, from rule to class: they are not said again, and new ones are added.

    Returns
    -------
    Markup
        Coordinates have `DECIMALS` decimals, styles are classes, and what is not drawn is left out. Each colour is
        `var(--c-NAME, #rrggbb)`, by the names of `policysim.figures.looks.NAMED_COLOURS`, whose values in light and
        dark the page's style lists. What belongs to one policy stands in `<g data-policy="NAME">`.
    """
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        for name in list(element.attrib):
            element.set(name.rpartition("}")[2], element.attrib.pop(name))
    # The page itself says what a figure is.
    for tag in ("metadata", "style", "title", "desc"):
        _remove(root, tag)
    _mark_policies(root)
    _unclip(root)
    _name(root, prefix, _places(root) if markers else [])
    _shorten(root)
    styles = {} if styles is None else styles
    known = len(styles)
    _classes(root, prefix, styles)
    _gather(root)
    _flatten(root)
    _join(root)
    _frame(root)
    for marker in markers:
        root.append(marker_line(marker, position, DECIMALS))
    rules = "".join(f".{name}{{{rule}}}" for rule, name in list(styles.items())[known:])
    body = ElementTree.tostring(root, encoding="unicode", short_empty_elements=True).replace(" />", "/>")
    return Markup(body.replace(">", f"><style>{rules}</style>", 1) if rules else body)


def _remove(root: ElementTree.Element, tag: str) -> None:
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag == tag]:
            parent.remove(child)


def _mark_policies(root: ElementTree.Element) -> None:
    """Say of each group that belongs to a policy to which."""
    for element in root.iter("g"):
        found = _POLICY.fullmatch(element.get("id", ""))
        if found:
            del element.attrib["id"]
            element.set("data-policy", found[1])


def _unclip(root: ElementTree.Element) -> None:
    """Lines of a grid end where their panel does."""
    for group in root.iter("g"):
        if group.get("id", "").startswith("matplotlib.axis_"):
            for element in group.iter():
                element.attrib.pop("clip-path", None)


def _join(parent: ElementTree.Element) -> None:
    """Groups of the same policy that follow each other become one."""
    children: list[ElementTree.Element] = []
    for child in list(parent):
        _join(child)
        name = child.get("data-policy")
        if name is not None and len(child.attrib) == 1 and children and children[-1].attrib == child.attrib:
            children[-1].extend(list(child))
        else:
            children.append(child)
    parent[:] = children


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


def _classes(root: ElementTree.Element, prefix: str, styles: dict[str, str]) -> None:
    """Styles become classes; those that are new join the mapping from each rule to the name of its class."""
    for element in root.iter():
        style = element.attrib.pop("style", "")
        kept = [part for part in _FONTS.sub("", style).split("; ") if part.strip("; ") and part not in _DEFAULTS]
        rule = _COLOUR.sub(_variable, ";".join(part.strip("; ").replace(": ", ":") for part in kept))
        if rule:
            element.set("class", styles.setdefault(rule, f"{prefix}_{len(styles)}"))


def _variable(colour: re.Match[str]) -> str:
    name = NAMED_COLOURS.get(colour[0].upper())
    return f"var(--c-{name},{colour[0]})" if name else colour[0]


def _gather(root: ElementTree.Element) -> None:
    """What is drawn again and again has the look of what is drawn; the markers of a line have that of their group."""
    drawn = {f"#{element.get('id')}": element.get("class") for element in root.iter("path") if "id" in element.attrib}
    for element in root.iter("use"):
        if drawn.get(element.get("href", "")) == element.get("class"):
            element.attrib.pop("class", None)
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
    """The size comes from the page, up to a limit."""
    width = float(root.attrib["viewBox"].split()[2])
    for name in ("width", "height", "version", "xmlns", "role"):
        root.attrib.pop(name, None)
    scale = LARGEST_NARROW if width <= 72 * READABLE_WIDTH else LARGEST
    root.set("style", f"max-width:{width * scale:.0f}px")


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
