"""Where the words of an SVG file stand in a browser."""

import re
from xml.etree import ElementTree

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from policysim.figures.lettering import measurable

# A browser's box of a line of DejaVu Sans reaches from its ascent to its descent, in font sizes.
ASCENT, DESCENT = 0.928, 0.236
TEXT = "{http://www.w3.org/2000/svg}text"


def width(words, size, style):
    font = FontProperties(
        family="DejaVu Sans",
        size=size,
        weight="bold" if "700" in style or "bold" in style else "normal",
        style="italic" if "italic" in style else "normal",
    )
    return text_to_path.get_text_width_height_descent(measurable(words), font, False)[0]


def text_boxes(svg):
    """(words, (left, right, top, bottom)) of each line of text of an SVG, in points, as a browser lays it out."""
    boxes = []
    for element in ElementTree.fromstring(svg).iter(TEXT):
        style, words = element.attrib["style"], element.text
        size = float(re.search(r"([\d.]+)px", style)[1])
        # A line of its own has a place; one of several is moved there.
        moved = re.search(r"translate\(([-\d.]+) ([-\d.]+)\)", element.attrib.get("transform", ""))
        x, y = (float(value) for value in (moved.groups() if moved else (element.attrib["x"], element.attrib["y"])))
        anchor = re.search(r"text-anchor: (\w+)", style)
        start = {"middle": -0.5, "end": -1.0}.get(anchor[1] if anchor else "", 0.0) * width(words, size, style)
        along, across = (start, start + width(words, size, style)), (-ASCENT * size, DESCENT * size)
        turned = "rotate(-90" in element.attrib.get("transform", "")
        # Turned by a quarter to the left, along is up and across is to the right.
        dx, dy = (across, (-along[1], -along[0])) if turned else (along, across)
        boxes.append((words, (x + dx[0], x + dx[1], y + dy[0], y + dy[1])))
    return boxes


def text_sizes(svg):
    """(words, size) of each line of text of an SVG, in points."""
    texts = ElementTree.fromstring(svg).iter(TEXT)
    return [(text.text, float(re.search(r"([\d.]+)px", text.attrib["style"])[1])) for text in texts]


def overlap(one, other):
    """Whether two boxes share more than a fifth of a point both ways."""
    return all(min(one[i + 1], other[i + 1]) - max(one[i], other[i]) > 0.2 for i in (0, 2))
