"""The files at the root of the repository as pages, and links that work on GitHub and on the site alike."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
AT_ROOT = {"changelog": "CHANGELOG.md", "contributing": "CONTRIBUTING.md", "security": "SECURITY.md"}
SOURCE_LINK = re.compile(r"\[([^\]]+)\]\((?:\.\./)?(?:src|tests|benchmarks|experiments|examples)/[^)]*\)")
"""A link to a file that is not on the site: only its text is left."""


def _rewrite(app, docname, source):
    text = source[0]
    if docname in AT_ROOT:
        app.env.note_dependency(str(ROOT / AT_ROOT[docname]))
        text = (ROOT / AT_ROOT[docname]).read_text().replace("](docs/", "](")
    text = SOURCE_LINK.sub(r"\1", text).replace("](../examples)", "](auto_examples/index.rst)")
    for page, file in AT_ROOT.items():
        text = re.sub(rf"\]\((?:\.\./)?{re.escape(file)}", f"]({page}.md", text)
    source[0] = text


def setup(app):
    """Rewrites each page when it is read."""
    app.connect("source-read", _rewrite)
    return {"parallel_read_safe": True}
