"""Public classes in the text, as `ARDRegressor` or `ARDRegressor(average=False)`, link to the API reference."""

from docutils import nodes
from sphinx import addnodes

import sparsebayes
from sparsebayes import inspection

CLASSES = {
    name: f"{module.__name__}.{name}"
    for module in (sparsebayes, inspection)
    for name in module.__all__
    if name[0].isupper()  # functions are words like load and save, which also mean other things
}


def _link(app, doctree):
    for literal in list(doctree.findall(nodes.literal)):
        target = CLASSES.get(literal.astext().split("(")[0].split(".")[0])
        if target is None or isinstance(literal.parent, nodes.reference | addnodes.pending_xref | nodes.title):
            continue
        link = addnodes.pending_xref(
            "",
            refdomain="py",
            reftype="class",
            reftarget=target,
            refexplicit=True,
            refwarn=True,
            refdoc=app.env.docname,
        )
        literal.replace_self(link)
        link += literal


def setup(app):
    """Wraps the names when a page has been read."""
    app.connect("doctree-read", _link)
    return {"parallel_read_safe": True}
