"""The text of an SVG in few letters: short numbers, and paths without points that lie between their neighbours."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np

from policies.arrays import FloatArray

DECIMALS = 1
# A point so near to the line between two others is on it.
STRAIGHT = 0.2
# Lines alone, with no curve.
POLYLINE = r"[MLz\s\d.e-]+"
_NUMBER = re.compile(r"-?\d*\.\d+(?:e-?\d+)?")
_LINE = re.compile(r"M[-\d. ]+(?:L[-\d. ]+)+")


def shorten(root: ElementTree.Element) -> None:
    """Short numbers, and no white space between elements."""
    for element in root.iter():
        for name in ("d", "x", "y", "width", "height", "transform"):
            if name in element.attrib:
                element.set(name, _rounded(element.attrib[name]))
        if "d" in element.attrib:
            path = re.sub(r"\s*([A-Za-z])\s*", r"\1", _straight(element.attrib["d"])).strip()
            # After the start of a line, a point needs no letter.
            element.set("d", _LINE.sub(lambda match: match[0].replace("L", " "), path))
        if re.fullmatch(r"rotate\(-?0 .*\)", element.get("transform", "")):
            del element.attrib["transform"]
        element.tail = None if not (element.tail or "").strip() else element.tail
        element.text = None if not (element.text or "").strip() else element.text


def points_of(path: str) -> FloatArray:
    """The points of a path of lines alone, (n, 2)."""
    found: FloatArray = np.array(re.findall(r"-?[\d.]+(?:e-?\d+)?", path), dtype=float).reshape(-1, 2)
    return found


def _straight(path: str) -> str:
    """A polyline in few words: without the points that lie on the line between their neighbours."""
    if not re.fullmatch(POLYLINE, path) or path.count("M") != 1:
        return path
    points = points_of(path)
    (x, y), *rest = (tuple(_rounded(f"{value:.6f}") for value in point) for point in points[_corners(points)])
    parts, last = [f"M{x} {y}"], "L"
    for to_x, to_y in rest:
        # A level or an upright piece needs one number.
        letter = "H" if to_y == y else "V" if to_x == x else "L"
        number = to_x if letter == "H" else to_y if letter == "V" else f"{to_x} {to_y}"
        parts.append((" " if letter == last else letter) + number)
        x, y, last = to_x, to_y, letter
    return "".join(parts) + ("z" if path.strip().endswith("z") else "")


def _corners(points: FloatArray) -> list[int]:
    """Which points of a polyline are kept (Douglas & Peucker 1973)."""
    kept, left = [0], [len(points) - 1]
    while left:
        first, last = kept[-1], left[-1]
        chord = points[last] - points[first]
        between = points[first + 1 : last] - points[first]
        length = float(np.hypot(*chord))
        across = between @ np.array([-chord[1], chord[0]]) / length if length else np.hypot(*between.T)
        if len(between) and np.abs(across).max() > STRAIGHT:
            left.append(first + 1 + int(np.abs(across).argmax()))
        else:
            kept.append(left.pop())
    return kept


def _rounded(text: str) -> str:
    def shorter(match: re.Match[str]) -> str:
        number = f"{float(match[0]):.{DECIMALS}f}".rstrip("0").rstrip(".")
        return "0" if number == "-0" else number

    return _NUMBER.sub(shorter, text)
