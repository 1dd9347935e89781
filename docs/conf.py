"""The documentation site: sphinx-build -W --keep-going docs docs/_build/html."""

import sys
from pathlib import Path

import sparsebayes

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

project = "sparsebayes"
author = "The sparsebayes developers"
copyright = "The sparsebayes developers"  # the name that Sphinx asks for
release = version = sparsebayes.__version__

extensions = [
    "api_links",
    "mathml",
    "members",
    "myst_parser",
    "numpydoc",
    "page_links",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "_templates", "figures", "**/GALLERY_HEADER.rst"]
nitpicky = False  # types in docstrings are words ("ndarray of shape (n,)"), not links
default_role = "literal"
smartquotes = False  # primes are primes

# Pages. Headings have the addresses that GitHub gives them, so that the same links work in both places.
myst_heading_anchors = 4
myst_enable_extensions = ["dollarmath", "deflist"]
html_math_renderer = "mathml"

# API reference: one page for each public name (docs/api.md), of its own members.
autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # the docstrings say the types
numpydoc_show_class_members = False  # the template lists them

# Examples: every file is run, and a failing one fails the build (_ext/example_checks.py says what else does).
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "backreferences_dir": "api/examples",  # small pictures of the examples below each class of the reference
    "doc_module": ("sparsebayes",),
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1,
    "parallel": 2,
    "reset_modules": ("matplotlib", "example_checks.checked"),
    "reset_modules_order": "both",
    "remove_config_comments": True,
    "within_subsection_order": "FileNameSortKey",
}


html_theme = "pydata_sphinx_theme"
html_title = f"sparsebayes {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {"tutorial": []}  # it has no pages below it
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
html_context = {"default_mode": "auto"}
