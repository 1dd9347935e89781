"""The report as one HTML file that needs neither a network nor scripts."""

import os
from typing import Any

from sparsebayes.app.facts import Facts
from sparsebayes.app.report.sections import command, provenance, sections, warned
from sparsebayes.app.report.summary import answers, lede
from sparsebayes.app.words import name
from sparsebayes.io.atomic_file import whole_file


def write(facts: Facts, path: str | os.PathLike[str]) -> None:
    """Write the report of a study. The file appears whole or not at all; the same study gives the same bytes."""
    data = html(facts).encode()
    with whole_file(path) as file:
        file.write(data)


def html(facts: Facts) -> str:
    """The report as text. Names from the data are escaped, and shortened if they are very long."""
    study, environment = facts.study, _environment()  # before the figures: what is missing is said first
    return rendered(
        environment,
        target=name(study.target),
        source=name(study.source, 200),
        lede=lede(facts),
        answers=answers(facts),
        sections=sections(facts),
        provenance=provenance(facts),
        command=command(facts),
        warnings=warned(facts),
        version=name(study.version),
        n_rows=len(study.y),
    )


def rendered(environment: Any = None, **parts: Any) -> str:
    """The page of these parts."""
    return str((environment or _environment()).get_template("report.html").render(**parts))


def _environment() -> Any:
    try:
        import jinja2
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(f"the report needs {error.name}: pip install 'sparsebayes[app]'") from error
    return jinja2.Environment(
        loader=jinja2.PackageLoader("sparsebayes.app.report"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
