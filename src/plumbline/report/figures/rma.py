'''Remote gets and puts by the number of messages outstanding.'''

import numpy as np

from plumbline.model import quantity, records as measurements, sources
from plumbline.mpi import messages, rma as model
from plumbline.report import drawing
from plumbline.report.figures.common import Table, by_transport, not_drawn
from plumbline.report.readings import grouped, quartiles

SOURCE = 'After anderson1997, figure 4.'

HEADER = ('way', 'over', 'latency', 'which is the time', 'bandwidth', 'words: W outstanding over 1 (W)', 'half of the best rate at W =')


def _apart(details):
    '''(what tells it from the others, records) of each place, transport and kind of memory.'''
    for at, transport, records in by_transport(details):
        if not records:
            yield f'{transport}{at}', []
        for memory, those in grouped(records, lambda record: record['options']['memory']):
            yield f'{transport}, {memory}{at}', those


def pipeline(details):
    '''Bandwidth of words over the messages outstanding, and latency and bandwidth of all ways in one table.'''
    table = []
    for over, records in _apart(details):
        title = f'Transfers by messages outstanding, {over}'
        sizes = [record['size'] for record in records]
        curves = model.curves(records, min(sizes, default=0))
        if not any(len(curve) > 1 for curve in curves.values()):
            yield not_drawn(title, 'there are no records of two or more numbers of messages outstanding')
            continue
        points = {variant: {window: quartiles(measurements.rate(record)) for window, record in curve.items()} for variant, curve in curves.items()}
        yield title, _caption(min(sizes)), drawing.log_curves(430, points, 'MB/s', 'messages outstanding, W', 'bandwidth (MB/s)')
        table += _rows(over, curves, model.curves(records, max(sizes)))
    if table:
        t3e = sources.table('anderson1997-table10-message-latency')
        then = [[f'T3E, {title}', "the T3E's network", f"{t3e[name]['latency_us']} us", '', f"{t3e[name]['bandwidth_mb_per_s']} MB/s", '', '']
                for name, title in (('shmem', 'sma (shmem)'), ('mpi', 'MPI'), ('pvm', 'PVM'))]
        yield 'Latency and bandwidth of get, put and send', (
            "Latency: of the smallest message, one outstanding. Bandwidth: of the largest message, as many outstanding "
            "as were measured. For a send the target must receive; for gets and puts it waits in the MPI, which may then serve "
            "them: see rma_target. The T3E's: anderson1997, table 10."
        ), Table(HEADER, table + then)


def _caption(size):
    return (
        f"Bandwidth of messages of {quantity.size(size)}, each with a place of its own in the other process's memory, over the number of them that "
        "are started before the first is waited for; line: median, band: quartiles. A curve that rises with W hides latency, a flat one has none to "
        "hide, or an MPI that does not. On the T3E less than 50 MB/s with 8 outstanding words, more than 300 MB/s with 128, where all of the "
        f"latency was hidden. {SOURCE}"
    )


def _rows(over, words, blocks):
    for variant, curve in words.items():
        largest = blocks[variant][max(blocks[variant])]
        yield [variant, over, quantity.amount(float(np.median(messages.seconds(curve[min(curve)]))), 's'), model.WAYS[variant],
               quantity.amount(measurements.median_rate(largest), 'MB/s'),
               f'{quantity.digits(float(np.median(model.speedup(curve))))} ({max(curve)})', quantity.digits(model.half_window(curve))]


def target(details):
    '''What gets and puts take by what the target does meanwhile.'''
    rows = []
    for over, records in _apart(details):
        ways = {record['variant']: record for record in records}
        for way in ('get', 'put') if ways else ():
            rewritten = ways.get(f'{way}_rewritten')
            rows.append([way, over, _time(ways[way]), _time(ways[f'{way}_busy']), _middle(model.progress(ways, way)),
                         _time(rewritten) if rewritten else '', _middle(model.slowdown_rewritten(ways)) if rewritten else ''])
    if rows:
        yield 'Gets and puts by what the target does meanwhile', (
            "Time of one transfer, one outstanding. The target waits in the MPI; or it computes, and calls the MPI now and then "
            "(--compute): progress is 1 where transfers need nothing of it, near 0 where they wait for its call. Rewritten: the "
            "target has just written what is fetched, so that in shared memory it comes from its cache, not from the origin's own."
        ), Table(('way', 'over', 'the target waits', 'computes', 'progress', 'rewritten', 'slowdown'), rows)


def _time(record):
    return quantity.amount(float(np.median(model.seconds(record))), 's')


def _middle(samples):
    return quantity.digits(float(np.median(samples)))


FIGURES = {'rma_target': target, 'rma_pipeline': pipeline, 'shmem_pipeline': pipeline}
