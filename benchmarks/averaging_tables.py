"""Tables of the results that averaging.py writes."""

import numpy as np
from contenders import AVERAGED, SINGLE
from records import by, mean, table

EDGES = np.array([0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1])
"""Of the bins of inclusion probabilities; claims are the features at 0.9 or above."""
OURS = (AVERAGED, SINGLE)
SHOWN = (AVERAGED, SINGLE, "LassoCV")
"""Methods with a column of their own in the table of errors."""


def percent(ratio):
    return "" if np.isnan(ratio) else f"{100 * (ratio - 1):+.1f}"


def share(value, digits=2):
    return "" if np.isnan(value) else f"{value:.{digits}f}"


def common(records):
    """The records of the seeds that every rival has; a method of ours with fewer seeds does not reduce them."""
    methods = by(records, "method")
    rivals = [{record["seed"] for record in fits} for name, fits in methods.items() if name not in OURS]
    seeds = set.intersection(*rivals) if rivals else {record["seed"] for record in records}
    return {
        name: {record["seed"]: record for record in fits if record["seed"] in seeds} for name, fits in methods.items()
    }


def excess(records):
    """Of one design: name and mean error of the best rival, and (error over its error, standard error) by method.

    The best rival is the one with the least mean error over all seeds. A method is compared with it on the seeds that
    both have.
    """
    methods = common(records)
    rivals = {name: fits for name, fits in methods.items() if name not in OURS}
    if not rivals:
        return None
    error = {name: mean(fits.values(), "rmse") for name, fits in rivals.items()}
    best = min(error, key=error.get)
    ratios = {}
    for name, fits in methods.items():
        shared = sorted(fits.keys() & rivals[best].keys())
        if shared:
            mine, theirs = (np.array([group[seed]["rmse"] for seed in shared]) for group in (fits, rivals[best]))
            spread = (mine / theirs).std(ddof=1) / np.sqrt(len(shared)) if len(shared) > 1 else np.nan
            ratios[name] = mine.mean() / theirs.mean(), spread
    return best, error[best], ratios


def errors(records):
    """Per design: the best rival's error, and by how many per cent others are above it."""
    rows, ratios = [], {name: [] for name in SHOWN}
    for design, fits in by(records, "design").items():
        found = excess(fits)
        if found is None:
            continue
        best, error, ratio = found
        cells = []
        for name in SHOWN:
            value, spread = ratio.get(name, (np.nan, np.nan))
            ratios[name].append(value)
            cells.append(percent(value) + (f" ± {100 * spread:.1f}" if spread > 0 and name == AVERAGED else ""))
        floor = error / mean(fits, "noise")
        rows.append([design, best, f"{error:.4g}", f"{floor:.3f}", *cells])
    if not rows:
        return ""
    summary = {"mean": np.nanmean, "worst": np.nanmax}
    known = {name: values for name, values in ratios.items() if not np.all(np.isnan(values))}
    for title, take in summary.items():
        cells = [percent(take(known[name])) if name in known else "" for name in SHOWN]
        rows.append([f"**{title}**", "", "", "", *cells])
    late = [str(np.sum(np.array(known[name]) > 1.05)) if name in known else "" for name in SHOWN]
    rows.append(["**designs above +5 %**", "", "", "", *late])
    header = ["design", "best rival", "its RMSE", "over noise", *(f"{name}, %" for name in SHOWN)]
    return table(header, rows)


def methods(records):
    """Per method over all designs: error above the best rival's, coverages, claims, time."""
    designs = by(records, "design")
    ratios = {design: found[2] for design, fits in designs.items() if (found := excess(fits)) is not None}
    rows = []
    for name, fits in by(records, "method").items():
        values = {design: ratio[name][0] for design, ratio in ratios.items() if name in ratio}
        worst = max(values, key=values.get, default="")
        claimed = [record for record in fits if record.get("hits") is not None]
        kept, hits = (sum(record[field] for record in claimed) for field in ("kept", "hits"))
        found = hits / max(sum(record["n_true"] for record in claimed), 1)
        rows.append(
            [
                name,
                len(fits),
                percent(np.mean(list(values.values()))) if values else "",
                f"{percent(values[worst])} ({worst})" if values else "",
                share(mean(fits, "cover")),
                share(mean(fits, "cover_weights"), 3),
                share(mean(fits, "cover_true")),
                f"{kept / len(claimed):.1f} / {hits / len(claimed):.1f}" if claimed else "",
                f"{hits / kept:.3f}" if kept else "",
                f"{found:.2f}" if claimed else "",
                f"{mean(fits, 'seconds'):.3f}",
            ]
        )
    header = ["method", "fits", "mean, %", "worst, %", "cover y", "cover w", "cover true w", "kept / true"]
    return table([*header, "precision", "recall", "seconds"], rows)


def claims(records, method):
    """Per design, for one method of ours: coverages, claims and time."""
    rows = []
    for design, fits in by([record for record in records if record["method"] == method], "design").items():
        kept = f"{mean(fits, 'kept'):.1f} / {share(mean(fits, 'hits'), 1)}"
        covers = share(mean(fits, "cover")), share(mean(fits, "cover_weights"), 3), share(mean(fits, "cover_true"))
        over_noise = mean(fits, "rmse") / mean(fits, "noise")
        rows.append([design, len(fits), f"{over_noise:.3f}", *covers, kept, sets(fits), f"{mean(fits, 'seconds'):.3f}"])
    header = ["design", "fits", "RMSE over noise", "cover y", "cover w", "cover true w", "kept / true"]
    return table([*header, "sets / with a true one", "seconds"], rows) if rows else ""


def sets(fits):
    """Mean number of credible sets, and of those that hold a true feature."""
    found = [record["sets"] for record in fits if "sets" in record]
    if not found:
        return ""
    hits = sum(holds for sets in found for *_, holds in sets)
    return f"{sum(map(len, found)) / len(found):.1f} / {hits / len(found):.1f}"


def credible_sets(records):
    """All credible sets of the averaged model, by size: stated probability against the share with a true feature."""
    found = [row for record in records if record["method"] == AVERAGED for row in record.get("sets", [])]
    rows = []
    for title, low, high in (("1", 1, 1), ("2 to 5", 2, 5), ("6 to 20", 6, 20), ("more", 21, np.inf)):
        part = [row for row in found if low <= row[0] <= high]
        if part:
            _, probability, purity, holds = np.mean(part, axis=0)
            rows.append([title, len(part), f"{probability:.3f}", f"{holds:.3f}", f"{purity:.2f}"])
    header = ["features in the set", "sets", "mean probability", "share with a true one", "mean purity"]
    return table(header, rows) if rows else ""


def binned(records):
    """For each bin: features, sum of their inclusion probabilities, true features; None without averaged fits."""
    found = [record["bins"] for record in records if record["method"] == AVERAGED and "bins" in record]
    return np.sum(found, axis=0) if found else None


def calibration(records):
    """Inclusion probabilities of the averaged model against the share of true features, over all designs."""
    sums = binned(records)
    if sums is None:
        return ""
    rows = []
    for low, high, (count, total, hits) in zip(EDGES[:-1], EDGES[1:], sums, strict=True):
        shares = (f"{total / count:.3f}", f"{hits / count:.3f}") if count else ("", "")
        rows.append([f"{low:g} to {high:g}", int(count), int(hits), *shares])
    return table(["probability", "features", "true", "mean probability", "share true"], rows)


def false_alarms(records):
    """On pure noise: the share of fits that claim anything."""
    rows = []
    for (design, method), fits in by(records, "design", "method").items():
        claimed = [record["kept"] for record in fits if record["kept"] is not None]
        if claimed:
            rows.append(
                [design, method, len(claimed), f"{np.mean(np.array(claimed) > 0):.2f}", f"{np.mean(claimed):.1f}"]
            )
    return table(["design", "method", "fits", "share with a claim", "mean kept"], rows) if rows else ""


def trios(records):
    """One of three correlated features is true: what is claimed, and what the credible sets hold."""
    rows = []
    for (design, method), fits in by(records, "design", "method").items():
        claimed = [record for record in fits if record["kept"] is not None]
        if not claimed:
            continue
        wrong = sum(record["kept"] > record["hits"] for record in claimed)
        right = sum(record["hits"] for record in claimed)
        listed = [record["sets"] for record in claimed if "sets" in record]
        found = sum(any(holds for *_, holds in sets) for sets in listed)
        false = sum(not holds for sets in listed for *_, holds in sets)
        sizes = [size for sets in listed for size, *_ in sets]
        cells = (
            [f"{found} of {len(listed)}", false, f"{np.mean(sizes):.1f}" if sizes else ""] if listed else ["", "", ""]
        )
        rows.append([design, method, len(claimed), right, wrong, *cells])
    header = ["design", "method", "fits", "true one claimed", "fits with a wrong claim"]
    return table([*header, "a set holds the true one", "sets without", "mean size"], rows) if rows else ""


def report(records):
    """All tables that the records fill, in Markdown."""
    groups = by(records, "group")
    parts = []

    def add(title, text):
        if text:
            parts.append(f"### {title}\n\n{text}")

    for group, title in (("designs", "Designs"), ("readme", "The README's designs")):
        fits = groups.get(group, [])
        add(f"{title}: test error above the best rival's", errors(fits))
        add(f"{title}: all methods", methods(fits) if fits else "")
        for method in OURS:
            add(f"{title}: {method}", claims(fits, method))
    add("Calibration of inclusion probabilities (designs)", calibration(groups.get("designs", [])))
    add("Credible sets (designs)", credible_sets(groups.get("designs", [])))
    add("Pure noise", false_alarms(groups.get("noise", [])))
    add("One of three correlated features is true", trios(groups.get("trio", [])))
    return "\n".join(parts)
