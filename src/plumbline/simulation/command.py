'''``plumbline simulate``: what its options ask for, and the answer as text.'''

import re
import shutil
from pathlib import Path

import polars as pl

from plumbline.errors import PlumblineError
from plumbline.simulation import network, program, study


def _numbers(text, option, pattern, kind, wanted):
    found = [part.strip() for part in text.split(',')]
    for part in found:
        if not re.fullmatch(pattern, part):
            raise PlumblineError(f'{option} {text}: {part!r} is not {wanted}')
    return [kind(part) for part in found]


def processes_of(text):
    '''Numbers of processes: ``16,64``.

    :raises PlumblineError: for anything that is not a positive number.
    '''
    return _numbers(text, '--processes', r'[1-9]\d{0,6}', int, 'a number of processes; give such as 16,64,256')


def latencies_of(text, given):
    '''Latencies in us: ``1,5`` as they are, ``+2`` so much more than ``given``.

    :raises PlumblineError: for what is no number, or comes to less than 0.
    '''
    number = r'[+-]?\d+(\.\d*)?'
    parts = _numbers(text, '--latency', number, str, 'a time in us; give such as 5, or +2 for so much more')
    latencies = [given + float(part) if part[0] in '+-' else float(part) for part in parts]
    for part, latency in zip(parts, latencies):
        if latency < 0:
            raise PlumblineError(f'--latency {part}: comes to {latency:g} us; a time cannot be negative')
    return latencies


def _rows(cells, told):
    '''A table: processes down, latencies across; ``told`` makes a text of each row of ``cells``.'''
    shown = study.wide(cells.with_columns(text=pl.Series([told(one) for one in cells.iter_rows(named=True)])), 'text')
    latencies = [name for name in shown.columns if name != 'processes']
    width = 3 + max(len(text) for name in latencies for text in shown[name])
    yield 'processes' + ''.join(f'{float(name):g} us'.rjust(width) for name in latencies)
    for row in shown.iter_rows(named=True):
        yield f"{row['processes']:>9}" + ''.join(row[name].rjust(width) for name in latencies)


def _published(simulated, where, application, folder):
    fitted, cells = study.predict(simulated, where, application, folder)
    yield (f'{study.source_of(application)}: per cent of the time in communication routines: predicted (published, difference '
           'in points)')
    yield from _rows(cells, lambda one: f"{one['percent']:.1f} ({one['published']:g}, "
                     + ('fitted)' if one['fitted'] else f"{one['difference']:+.1f})"))
    yield (f'compute rate {where.rate_of(application):g} Mflop/s by {Path(where.path).name}; overhead per message and side '
           f'{fitted.overhead:.2f} us, fitted to one cell; the others are predicted')
    yield f'mean absolute difference of the {cells.height - 1} predicted cells: {study.mean_difference(cells):.2f} points'
    yield from (f'not monotone: {line}' for line in study.falls(cells))


def answer(path, application, processes, latency, size, iterations, published, folder=program.FOLDER):
    '''The lines of the answer, as they come.

    :arg path: network file.
    :arg processes: text, for :func:`processes_of`.
    :arg latency: text, for :func:`latencies_of`; :obj:`None` for the file's own.
    :arg published: whether the source's table is asked for.
    :raises PlumblineError: for bad input, or where SimGrid is not there.
    '''
    where = network.load(path)
    if application not in program.ITERATIONS:
        raise PlumblineError(f"--application {application}: there are {', '.join(program.ITERATIONS)}")
    where.rate_of(application)
    counts = processes_of(processes)
    latencies = latencies_of(latency, where.latency) if latency else [where.latency]
    simulated = program.build(folder / 'build')
    stage = folder / 'stage'
    shutil.rmtree(stage, ignore_errors=True)
    if published:
        yield from _published(simulated, where, application, stage)
    elif len(counts) == 1 and len(latencies) == 1 and latencies[0] != where.latency:
        yield from study.cost(simulated, where, application, counts[0], latencies[0], stage, size, iterations).lines
    else:
        cells = study.table(simulated, where, application, [(n, one) for n in counts for one in latencies], stage, size,
                            iterations)
        yield f'{application} of size {size}: per cent of the time in communication routines, by latency'
        yield from _rows(cells, lambda one: f"{one['percent']:.1f}")
