"""Figures as SVG for the page: small, with unique ids, in the page's light or dark colours."""

import io
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

from sparsebayes.inspection.style import BLUE, GREY, INK, LOOK, PALE, RED, SERIES, font_families

WIDTH = 5.0
"""Width of a figure in inches. At 72 units an inch its letters have the size of the page's on a phone."""
PAINTS = {INK: "ink", GREY: "muted", PALE: "pale", BLUE: "accent", RED: "alarm", "#ffffff": "paper"}
PAINTS |= {colour: f"line-{k}" for k, colour in enumerate(SERIES) if colour not in PAINTS}
"""Colours of the figures, and the CSS variables of the page that replace them."""
LETTERS = LOOK | {
    "font.size": 11,
    "legend.fontsize": 10,
    "svg.fonttype": "none",
    "svg.hashsalt": "sparsebayes",
    "text.parse_math": False,
    "figure.dpi": 72,
}
SVG = "{http://www.w3.org/2000/svg}"
LINK = "{http://www.w3.org/1999/xlink}href"
NUMBER = re.compile(r"-?\d+\.\d+")
COLOUR = re.compile("#[0-9a-f]{6}")
REFERENCE = re.compile(r"url\(#([^)]+)\)")


def drawn(draw: Callable[[Any], None], height: float, name: str, title: str) -> str:
    """Draw on axes of the given height in inches, and return an SVG element.

    Its title is `title`; its description is the element of the page with the id `name` + "-told".
    """
    import matplotlib
    from matplotlib.figure import Figure

    file = io.StringIO()
    look = LETTERS | {"font.family": font_families(matplotlib.rcParams["font.family"])}
    with matplotlib.rc_context(look), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from")  # the browser has further fonts
        figure = Figure(figsize=(WIDTH, height), layout="constrained")
        draw(figure.add_subplot())
        figure.patch.set_visible(False)
        figure.savefig(file, format="svg", metadata={"Date": None})
    return _for_a_page(ET.fromstring(file.getvalue()), name, title)


def _for_a_page(root: ET.Element, name: str, title: str) -> str:
    _drop(root, f"{SVG}metadata", f"{SVG}style")
    _rename_ids(root, name)
    for element in root.iter():
        _tidy(element)
    for group in root.iter("g"):
        _share_style(group)
    _unwrap(root)
    root.attrib = {
        "viewBox": root.attrib["viewBox"],
        "role": "img",
        "aria-labelledby": f"{name}-title",
        "aria-describedby": f"{name}-told",
    }
    heading = ET.Element("title", {"id": f"{name}-title"})
    heading.text = title
    root.insert(0, heading)
    return ET.tostring(root, encoding="unicode")


def _drop(root: ET.Element, *tags: str) -> None:
    for parent in list(root.iter()):
        for child in [child for child in parent if child.tag in tags]:
            parent.remove(child)


def _rename_ids(root: ET.Element, name: str) -> None:
    """Prefix the ids that are referred to with the name of the figure; drop the others."""
    values = [value for element in root.iter() for key, value in element.attrib.items() if key != "id"]
    found = dict.fromkeys(name for value in values for name in REFERENCE.findall(value))
    found |= dict.fromkeys(element.attrib[LINK][1:] for element in root.iter() if LINK in element.attrib)
    new = {old: f"{name}-{k}" for k, old in enumerate(found)}
    for element in root.iter():
        old = element.attrib.pop("id", None)
        if old in new:
            element.set("id", new[old])
        for key, value in element.attrib.items():
            element.set(key, REFERENCE.sub(lambda match: f"url(#{new[match[1]]})", value))
        if LINK in element.attrib:
            element.set("href", f"#{new[element.attrib.pop(LINK)[1:]]}")


def _tidy(element: ET.Element) -> None:
    """Round to two decimals, use the page's colours and fonts, drop empty rotations and white space."""
    element.tag = element.tag.removeprefix(SVG)
    for key, value in element.attrib.items():
        if key not in ("id", "href", "clip-path"):
            value = " ".join(
                NUMBER.sub(lambda number: f"{float(number[0]):.2f}".rstrip("0").rstrip("."), value).split()
            )
        element.set(key, COLOUR.sub(lambda colour: f"var(--{PAINTS[colour[0]]})", value))
    if element.get("transform", "").startswith(("rotate(-0 ", "rotate(0 ")):
        del element.attrib["transform"]
    if element.tag == "text":
        element.set("style", _without_family(element.get("style", "")))
    if element.text is not None and not element.text.strip():
        element.text = None
    element.tail = None


def _without_family(style: str) -> str:
    rules = [rule.partition(":")[::2] for rule in style.split(";") if rule.strip()]
    kept = []
    for key, value in ((key.strip(), value.strip()) for key, value in rules):
        if key == "font":
            size = re.search(r"[\d.]+px", value)
            kept.append(f"font-size:{size[0]}" if size else "")
        elif key != "font-family":
            kept.append(f"{key}:{value}")
    return ";".join(kept)


def _share_style(group: ET.Element) -> None:
    """Move the style that all points of a series share to their group."""
    points = [child for child in group if child.tag == "use"]
    styles = {point.get("style") for point in points}
    if len(points) > 1 and len(points) == len(group) and len(styles) == 1 and "style" not in group.attrib:
        group.set("style", styles.pop() or "")
        for point in points:
            point.attrib.pop("style", None)


def _unwrap(root: ET.Element) -> None:
    """Replace groups without attributes by their children."""
    for parent in list(root.iter()):
        k = 0
        while k < len(parent):
            child = parent[k]
            if child.tag == "g" and not child.attrib:
                parent[k : k + 1] = list(child)
            else:
                k += 1
