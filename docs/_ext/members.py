"""What the API reference lists of a class, and links from docstrings to pages."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[1]


def _defined_here(value):
    """Whether a function comes from this package, and not from scikit-learn's base classes."""
    value = getattr(value, "fget", None) or getattr(value, "__func__", None) or value
    return getattr(value, "__module__", "").startswith("sparsebayes")


def _skip(app, what, name, value, skip, options):
    """Leaves out the members that scikit-learn documents."""
    if what == "class" and not name.startswith("_") and (callable(value) or isinstance(value, property)):
        return skip or not _defined_here(value)
    return skip


def _link_pages(app, what, name, value, options, lines):
    """`docs/page.md` in a docstring becomes a link with the title of that page."""
    for number, line in enumerate(lines):
        lines[number] = re.sub(r"docs/(\w+)\.md", _page, line)


def _page(match):
    return f":doc:`/{match[1]}`" if (DOCS / f"{match[1]}.md").exists() else match[0]


def setup(app):
    """Connects the two."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-docstring", _link_pages)
    return {"parallel_read_safe": True}
