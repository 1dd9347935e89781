"""Every link inside the built site leads to a file and, with an anchor, to a place in it.

python docs/check_links.py docs/_build/html
"""

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Addresses that a page links to, and the names of its places."""

    def __init__(self, text):
        super().__init__()
        self.links, self.places = set(), {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.links.add(value)
            elif name in ("id", "name") and value:
                self.places.add(value)


@cache
def parsed(path):
    return Page(path.read_text(encoding="utf-8"))


def pages(site):
    """All but the templates that the theme keeps among its files."""
    return sorted(page for page in site.rglob("*.html") if "_static" not in page.parts)


def broken(site):
    """Pairs of page and link that lead nowhere; links to other sites are not followed."""
    for page in pages(site):
        for link in sorted(parsed(page).links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            target = target / "index.html" if target.is_dir() else target
            places = parsed(target).places if target.suffix == ".html" and target.exists() else None
            if not target.exists() or (places is not None and unquote(parts.fragment) not in places):
                yield page.relative_to(site), link


if __name__ == "__main__":
    root = Path(sys.argv[1]).resolve()
    found = list(broken(root))
    for page, link in found:
        print(f"{page}: {link}")
    print(f"{len(pages(root))} pages, {len(found)} broken links")
    sys.exit(bool(found))
