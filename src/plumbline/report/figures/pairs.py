"""Messages between all pairs of nodes: a cell for each, row the sender, column the receiver."""

import math

import numpy as np

from plumbline.errors import PlumblineError
from plumbline.mpi import pairs as model

from .. import drawing, quantity
from .common import Table, by_place

#: More nodes than this are drawn in blocks of neighbours, the slowest pair of each.
MOST_CELLS = 400

#: More names than this at an axis run into each other.
MOST_NAMES = 24

#: From as fast as twice the median to slow: light to dark, so that it survives grey-scale print.
COLOURS = [[0.0, "#ffffff"], [0.25, "#fdd9b5"], [0.5, "#e8742a"], [0.75, "#8c1d18"], [1.0, "#1a0504"]]


def pairs(details):
    """A heat map for each size of message, and the slow nodes and pairs by name."""
    rows, ranked = [], False
    for at, group in by_place(details):
        records = sorted((r for detail in group for r in detail.get("records") or []), key=lambda r: r["size"])
        if not records:
            yield f"Messages between all pairs of nodes{at}", "Not drawn: there are no records.", None
        for record in records:
            names = [process["host"] for process in group[0]["machine"]["processes"]]
            size = quantity.size(record["size"])
            title = f"Messages of {size} between all pairs of {len(names)} nodes{at}"
            try:
                seconds, spread = model.matrices(record)
            except PlumblineError as error:
                yield title, f"Not drawn: {error}.", None
                continue
            slow = None
            if len(names) >= model.LEAST_NODES:
                slow, ranked = model.outliers(seconds, spread, len(record["seconds"])), True
                rows += _rows(f"{size}{at}", slow, names)
            yield title, _caption(record, seconds, slow), _figure(seconds, names, slow)
    if ranked:
        yield "Nodes and links that are slow", (
            "A node: the median of its times over its partners against that of the other nodes, for sending and receiving. A link: "
            "the time between two nodes against what the two let expect, so that a slow node is not many slow links."
        ), Table(("message", "slow", "when it", "times as slow as expected"), rows or [("all", "none", "-", "-")])


def _caption(record, seconds, slow):
    if slow is None:
        ranked = f" With fewer than {model.LEAST_NODES} nodes a slow node cannot be told from a slow link."
    else:
        ranked = " A slow node is a dark row where it sends and a dark column where it receives, a slow link a dark cell."
    blocks = _width(len(seconds))
    return (
        "Row: the sender, column: the receiver. Colour: time of a message and its empty answer over that of the median node, "
        f"{quantity.amount(model.typical(seconds) * 1e6, 'us')}; median of {len(record['seconds'])} samples each, all pairs of a "
        "round at once."
        + ranked
        + (f" Each cell is the slowest pair of {blocks} x {blocks} neighbours." if blocks > 1 else "")
    )


def _rows(what, slow, names):
    for nodes, way in ((slow.senders, "sends"), (slow.receivers, "receives")):
        for node, factor in nodes:
            yield what, f"node {names[node]}", way, quantity.digits(factor)
    for (i, j), factor in slow.pairs[:20]:
        yield what, f"link {names[i]} to {names[j]}", "is used", quantity.digits(factor)
    if len(slow.pairs) > 20:
        yield what, f"{len(slow.pairs) - 20} more links", "are used", "-"


def _width(nodes):
    """Nodes in a row of a block."""
    return math.ceil(nodes / MOST_CELLS)


def _in_blocks(ratio):
    """The largest of each block of neighbours."""
    width, nodes = _width(len(ratio)), len(ratio)
    if width == 1:
        return ratio
    edge = -nodes % width
    padded = np.pad(np.nan_to_num(ratio), (0, edge)).reshape((nodes + edge) // width, width, -1, width)
    slowest = padded.max(axis=(1, 3))
    return np.where(slowest > 0, slowest, np.nan)


def _ticks(names, slow):
    """(positions, names) that find room: those of slow nodes, and others between them, evenly."""
    marked = slow.nodes[:MOST_NAMES] if slow else []
    step = math.ceil(len(names) / MOST_NAMES)
    others = [i for i in range(0, len(names), step) if all(abs(i - node) >= 0.9 * step for node in marked)]
    shown = sorted({*marked, *others})
    text = [f"<b>{drawing.plain_text(names[i])}</b>" if i in marked else drawing.plain_text(names[i]) for i in shown]
    return [i // _width(len(names)) for i in shown], text


def _figure(seconds, names, slow):
    figure = drawing.empty(560)
    figure.update_layout(plot_bgcolor=drawing.GRID)  # of the diagonal
    ratio = _in_blocks(seconds / model.typical(seconds)).astype(np.float32)
    depth = np.log2(ratio)
    top = max(2.0, math.ceil(float(np.nanmax(depth))))
    powers = np.arange(-1, top + 1, max(1, top // 5))
    width = _width(len(names))
    labels = [drawing.plain_text(name) for name in names[::width]]
    few, many = len(ratio) <= 10, len(ratio) > 64
    figure.add_heatmap(
        z=np.round(depth, 3),
        customdata=np.round(ratio, 3),
        x=list(range(len(ratio))),
        y=list(range(len(ratio))),
        zmin=-1,
        zmax=top,
        colorscale=COLOURS,
        xgap=0 if many else 1,
        ygap=0 if many else 1,
        hoverongaps=False,
        text=[[quantity.digits(value) for value in row] for row in ratio] if few else None,
        texttemplate="%{text}" if few else None,
        hovertext=None if many else [[f"{a} to {b}" for b in labels] for a in labels],
        hovertemplate=("row %{y}, column %{x}" if many else "%{hovertext}")
        + ": %{customdata:.2f} times the median<extra></extra>",
        colorbar={"title": {"text": "times the median"}, "tickvals": powers, "ticktext": [f"{2.0**p:g}" for p in powers]},
    )
    positions, text = _ticks(names, slow)
    figure.update_xaxes(title="receives", tickvals=positions, ticktext=text, tickangle=-60, showgrid=False, constrain="domain")
    figure.update_yaxes(
        title="sends", tickvals=positions, ticktext=text, autorange="reversed", showgrid=False, scaleanchor="x",
        constrain="domain",
    )
    return figure


FIGURES = {"node_pairs": pairs}
