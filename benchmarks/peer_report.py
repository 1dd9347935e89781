"""What the fits of the peer table come to: a CSV file, a figure and the tables in docs/peers.md."""

import csv
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from records import by, mean, table
from rivals import KINDS, OURS
from workloads import WORKLOADS

ROOT = Path(__file__).parents[1]
CSV = Path(__file__).parent / "results" / "peers.csv"
FIGURE = ROOT / "docs" / "figures" / "peers.png"
PAGE = ROOT / "docs" / "peers.md"
BEGIN, END = "<!-- tables: begin -->", "<!-- tables: end -->"
FIELDS = [
    "kind",
    "workload",
    "method",
    "fits",
    "seconds",
    "times_ours",
    "error",
    "error_over_ours",
    "log_loss",
    "kept",
    "hits",
    "n_true",
    "vectors",
    "status",
]


def row(fits):
    """Medians of times and means of the rest, of one method on one workload."""
    good = [fit for fit in fits if fit["status"] == "ok"]
    first = fits[0]
    return {
        "kind": first["group"],
        "workload": first["design"],
        "method": first["method"],
        "fits": len(good),
        "seconds": float(np.median([fit["seconds"] for fit in good])) if good else np.nan,
        **{key: mean(good, key) for key in ("error", "log_loss", "kept", "hits", "n_true", "vectors")},
        "status": next((fit["status"] for fit in fits if fit["status"] != "ok"), "ok"),
    }


def rows(records, earlier=()):
    """A row for each workload and method, with ratios to our default, or to our next method if that failed.

    Methods without fits among the records keep their row of an earlier file.
    """
    found = {(each["workload"], each["method"]): each for each in earlier}
    found |= {key: row(fits) for key, fits in by(records, "design", "method").items()}
    for workload in WORKLOADS:
        names = [name for name in KINDS[workload.kind] if (workload.name, name) in found]
        lines = [found[workload.name, name] for name in names]
        ours = next((each for each in lines if each["method"] in OURS and each["fits"]), None)
        for each in lines:
            ratios = {"times_ours": "seconds", "error_over_ours": "error"}
            yield each | {ratio: each[key] / ours[key] if ours else np.nan for ratio, key in ratios.items()}


def number(value):
    """Three digits, or nothing."""
    return "" if np.isnan(value) else f"{value:.0f}" if value >= 1000 else f"{value:.3g}"


def claimed(row):
    """Kept features and the true ones among them, out of all true ones."""
    if np.isnan(row["kept"]):
        return ""
    return number(row["kept"]) if np.isnan(row["hits"]) else f"{row['kept']:.3g} / {row['hits']:.3g}"


def markdown(lines):
    """A table for each workload."""
    parts = []
    for name, methods in by(lines, "workload").items():
        n_true = next((each["n_true"] for each in methods if not np.isnan(each["n_true"])), None)
        truth = "" if n_true is None else f", {n_true:.0f} true features"
        classes = any(not np.isnan(each["log_loss"]) for each in methods)
        header = ["method", "draws", "seconds", "× ours", "share wrong" if classes else "error", "÷ ours"]
        header += ["log loss"] if classes else []
        header += ["kept / true" if truth else "kept", "vectors"]
        body = []
        for each in methods:
            title = f"**{each['method']}**" if each["method"] in OURS else each["method"]
            if each["fits"] == 0:
                problem = each["status"].replace("|", "/").split("\n")[0]
                body.append([title, "0", problem, *[""] * (len(header) - 3)])
                continue
            values = ("fits", "seconds", "times_ours", "error", "error_over_ours")
            cells = [title, *(number(each[key]) for key in values)]
            cells += [number(each["log_loss"])] if classes else []
            body.append([*cells, claimed(each), number(each["vectors"])])
        parts.append(f"### {name}{truth}\n\n{table(header, body)}")
    return "\n".join(parts)


def draw(lines, path):
    """Two panels with a line for each workload: time and error of every method, in units of our default."""
    workloads = by(lines, "workload")
    place = {name: len(workloads) - k for k, name in enumerate(workloads)}
    figure, axes = plt.subplots(1, 2, figsize=(11, 0.36 * len(place) + 1.6), sharey=True, layout="constrained")
    for ax, key, title in zip(axes, ("times_ours", "error_over_ours"), ("time", "error"), strict=True):
        # Blue circles and orange triangles: colours that colour-blind readers can tell apart, and shapes besides.
        for wanted, style in (
            (False, {"marker": "^", "c": "#D55E00", "label": "other packages", "alpha": 0.7, "s": 34}),
            (True, {"marker": "o", "c": "#0072B2", "label": "sparsebayes", "s": 34}),
        ):
            chosen = [each for each in lines if (each["method"] in OURS) == wanted and each["fits"]]
            ax.scatter([each[key] for each in chosen], [place[each["workload"]] for each in chosen], **style)
        ax.axvline(1, color="0.4", lw=0.8)
        ax.set(xscale="log", xlabel=f"{title} ÷ {title} of our default (left is better)")
        ax.set_yticks(list(place.values()), list(place))
        ax.grid(axis="y", alpha=0.4)
        ax.set_axisbelow(True)
        ax.spines[["top", "right"]].set_visible(False)
    axes[1].set_xticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    axes[1].set_xticks([], minor=True)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def write_csv(records, path=CSV):
    """The rows as a file, numbers with three digits; what was not fitted again keeps its row."""
    lines = list(rows(records, read_csv(path) if path.exists() else ()))
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        for each in lines:
            writer.writerow({key: number(value) if isinstance(value, float) else value for key, value in each.items()})


def read_csv(path=CSV):
    """The rows of such a file."""
    words = ("kind", "workload", "method", "status")
    with open(path, newline="") as file:
        return [
            {key: value if key in words else float(value or "nan") for key, value in each.items()}
            for each in csv.DictReader(file)
        ]


def publish(lines, figure=FIGURE, page=PAGE):
    """The figure, and the tables between the marks of the page."""
    draw(lines, figure)
    text = page.read_text()
    page.write_text(f"{text.split(BEGIN)[0]}{BEGIN}\n\n{markdown(lines)}\n{END}{text.split(END)[1]}")
