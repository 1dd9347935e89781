"""Text from files and names of files, made safe to show.

A terminal obeys control characters: the name of a column could clear the screen, change what was printed before, or
set the title of the window. So text from elsewhere is shown with its control characters escaped.
"""


def printable(text: object, keep: str = "") -> str:
    """The text with every character that is not printable as its escape (\\x1b, \\u202e), but for those to keep."""
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in str(text))
