"""Figures of the report: check -> function on its results -> (title, caption, figure).

``FIGURES`` is the registry.  A function gets the results of one check's test cases, each the result object of
``schemas/result.json`` with the keys of the archive's row added (``check``, ``hostname``, ``partition``, ``environ``,
``level``, ``threads``), and ``metrics``, the rows of the archive.  It gives plotly figures, or tables; what cannot be
drawn is None, and its caption says why.
"""

from functools import partial
from typing import NamedTuple

from plumbline.likwid.bench import witness_best
from plumbline.limits import WITNESS_AGREES

from . import drawing, quantity
from .readings import efficiencies, grouped, limit_curve, limit_of, quartiles, rates, series_of

#: Places (partition, environment, host) that a check is drawn for: more than a reader looks at hides the odd one.
MOST_PLACES = 8


class Table(NamedTuple):
    """What reads better than a figure: text cells, the first column names the row."""

    header: tuple
    rows: list


def of_check(check, details):
    """List of (title, caption, figure) of one check; empty for a check that has no figures.

    The first places of ``details`` are drawn, so those that matter most come first.
    """
    draw = FIGURES.get(check)
    if not draw:
        return []
    places = list(dict.fromkeys(map(_place, details)))
    drawn = list(draw([detail for detail in details if _place(detail) in places[:MOST_PLACES]]))
    if len(places) > MOST_PLACES:
        caption = (
            f"Not drawn for {len(places) - MOST_PLACES} of {len(places)} places (those with a FAIL come first): "
            "all values stand in the table of verdicts."
        )
        drawn.append((check, caption, None))
    return drawn


def triad_curve(details):
    """Bandwidth over loop length, one figure per thread count (hager2004, figures 1 and 2)."""
    for detail, threads, records in _by_threads(details):
        title = f"Vector triad over loop length, {_threads(threads)}{_where(detail, details)}"
        kernels = [r for r in records if r["role"] == "kernel"]
        if len({r["size"] for r in kernels}) < 2:
            yield title, "Not drawn: there are no records at two or more loop lengths.", None
            continue
        figure = drawing.empty(430)
        drawing.add_curves(figure, series_of(kernels))
        limit = limit_curve(records)
        drawing.add_limits(figure, limit)
        caches = drawing.add_caches(figure, detail.get("machine") or {}, kernels)
        shown = [rate for r in kernels for rate in quartiles(rates(r))] + [rate for _, rate, _ in limit]
        drawing.log_lengths_and_rates(figure, shown)
        yield title, _curve_caption(caches, limit), figure


def _curve_caption(caches, limit):
    sentences = [
        "Application bandwidth (32 bytes per iteration) of A=B+C*D over the loop length, both logarithmic; line: "
        "median, band: quartiles of the samples.",
        f"Vertical lines: there the four arrays fill the caches of the threads ({caches})." if caches else "",
        "Limits: the machine's own, measured in the same rounds; the lower one counts the write-allocate of the stores."
        if limit
        else "No limit streams were measured, so no limit is drawn.",
        "After hager2004, figures 1 and 2.",
    ]
    return " ".join(filter(None, sentences))


def bars(details, title, source):
    """Variants, or options of one variant, side by side: a panel for each level and thread count.

    :arg title: what is compared.
    :arg source: the figure or table that shows the same elsewhere.
    """
    caption = (
        "Application bandwidth, median; whiskers: quartiles of the samples. On the bar: bandwidth, and how many times "
        "as fast as the first (median over the rounds, in which all ran in turn). Line: "
        f"{drawing.LIMIT_NAME}. Each panel has its own scale. After {source}."
    )
    for where, group in _by_place(details):
        records = [r for detail in group for r in detail.get("records") or [] if r.get("seconds")]
        panels = []
        for (level, threads), members in grouped(records, lambda r: (r["level"] or "", r["threads"])):
            kernels = [r for r in members if r["role"] == "kernel"]
            if kernels:
                panels.append(((level, threads), kernels, limit_of(members)))
        panels = [
            (f"{level or 'level unknown'}, {_threads(threads)}", kernels, limit)
            for (level, threads), kernels, limit in sorted(panels, key=lambda panel: panel[0])
        ]
        if panels:
            yield title + where, caption, drawing.bars(panels)
        else:
            yield title + where, "Not drawn: there are no records of the kernel.", None


def triad_scaling(details):
    """Parallel efficiency in cache and in memory over the number of threads (hager2004, section 4)."""
    caption = (
        "Rate of n threads over n times the rate of one, paired by round; whiskers: quartiles. In cache a healthy node "
        "stays near 1; in memory it falls as the threads share the bandwidth. After hager2004, section 4 and table 2."
    )
    for where, group in _by_place(details):
        title = f"Efficiency over threads{where}"
        curves = efficiencies(group)
        if curves:
            yield title, caption, drawing.efficiency(curves)
        else:
            yield title, "Not drawn: there are no records of one thread and of several.", None


def limits(details):
    """The machine's limits per level, with the independent witness beside (DESIGN, section 3)."""
    header = ("level", "threads", "own limit", "stream", "likwid-bench", "its kernel", "own / likwid-bench", "of peak")
    caption = (
        "Own: the highest traffic rate of any limit stream, median, with its name. Beside it the best of likwid-bench. "
        "Of peak: share of the rate that the datasheet promises."
    )
    for where, group in _by_place(details):
        title = f"The machine's own limits{where}"
        rows = sorted((row for detail in group for row in _limit_rows(detail)), key=lambda row: (row[0], int(row[1])))
        if rows:
            yield title, caption, Table(header, rows)
        else:
            yield title, "Not drawn: there are no records of limit streams.", None


#: Check class -> function(list of results), which yields (title, caption, figure, Table or None).
FIGURES = {
    "limits": limits,
    "triad_curve": triad_curve,
    "triad_memory": partial(bars, title="Variants of the vector triad in memory", source="hager2004, figure 4"),
    "triad_scaling": triad_scaling,
    "triad_allocation": partial(
        bars, title="Vector triad with dynamic and static arrays", source="hager2004, figure 2"
    ),
    "triad_alignment": partial(bars, title="Vector triad with shifted arrays", source="hager2007, figure 4"),
    "triad_firsttouch": partial(
        bars, title="Vector triad after parallel and serial first touch", source="hager2004, table 2"
    ),
}


# --- results by thread count and by place ----------------------------------------------------------------------


def _by_threads(details):
    """(result, threads, records) for each thread count of each result."""
    for detail in details:
        records = [r for r in detail.get("records") or [] if r.get("seconds")]
        if not records:
            yield detail, detail.get("threads"), []
        for threads in sorted({r["threads"] for r in records}):
            yield detail, threads, [r for r in records if r["threads"] == threads]


def _by_place(details):
    """(text that says where, results) for each partition, environment and host."""
    places = {}
    for detail in details:
        places.setdefault(_place(detail), []).append(detail)
    for group in places.values():
        yield _where(group[0], details), group


def _place(detail):
    return detail.get("partition"), detail.get("environ"), detail.get("hostname")


def _where(detail, details):
    """', environ, host': what tells this result from the others of its check."""
    told = [str(own) for own, all_of in zip(_place(detail), zip(*map(_place, details))) if len(set(all_of)) > 1 and own]
    return "".join(f", {text}" for text in told)


def _threads(threads):
    return "1 thread" if str(threads) == "1" else f"{threads} threads" if threads else "threads unknown"


# --- the table of limits ---------------------------------------------------------------------------------------


def _limit_rows(detail):
    """Cells of the table of limits: one row per level and thread count of one result."""
    # The program of this check runs the limit streams as its kernels.
    streams = [
        r
        for r in detail.get("records") or []
        if r.get("seconds") and (r["role"] == "limit" or r["kernel"] == "streams")
    ]
    rows = []
    for (level, threads), group in grouped(streams, lambda r: (r["level"] or "-", r["threads"])):
        own, record = limit_of([r | {"role": "limit"} for r in group])
        witness = _witness_of(detail, level, threads)
        seen = (
            [drawing.gigabytes(witness[0]), witness[1], _agreement(own / witness[0])]
            if witness
            else ["not confirmed by likwid-bench", "-", "-"]
        )
        rows.append([level, str(threads), drawing.gigabytes(own), record["variant"], *seen, _of_peak(detail, level)])
    return rows


def _agreement(ratio):
    return quantity.digits(ratio) + (": they disagree" if ratio < WITNESS_AGREES else "")


def _witness_of(detail, level, threads):
    """(GB/s, kernel) of likwid-bench's best at a level and thread count; None without that witness.

    ``witness`` is what ``plumbline.likwid.bench.parse_witness`` gives.
    """
    best = witness_best(detail.get("witness"), level, threads)
    return best and (best["traffic_rate"] * 1e-3, best["kernel"])


def _of_peak(detail, level):
    """The value of the metric ``of_peak`` of a level, or 'peak unknown'."""
    return next(
        (
            quantity.digits(row["value"])
            for row in detail.get("metrics") or []
            if row["metric"] == "of_peak" and row["subject"] == level and quantity.known(row["value"])
        ),
        "peak unknown",
    )
