'''``plumbline simulate``: what its options ask for, and the answer as text.'''

import re
import tempfile
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
    texts = cells.with_columns(text=pl.Series([told(one) for one in cells.iter_rows(named=True)]))
    shown = texts.pivot(on='latency', index='processes', values='text')
    latencies = [name for name in shown.columns if name != 'processes']
    width = 3 + max(len(text) for name in latencies for text in shown[name])
    yield 'processes' + ''.join(f'{float(name):g} us'.rjust(width) for name in latencies)
    for row in shown.iter_rows(named=True):
        yield f"{row['processes']:>9}" + ''.join(row[name].rjust(width) for name in latencies)


def _told(cells):
    '''How well a table was predicted.'''
    mean, largest = study.differences(cells)
    grown = ', '.join(f'{ratio:.2f}' for ratio in study.growth(cells).values())
    return f'{mean:8.2f} {largest:8.2f}   {grown}'


def _published(simulated, where, application, folder, sensitivity):
    fitted, cells = study.predict(simulated, where, application, folder)
    yield (f'{study.source_of(application)}: per cent of the time in communication routines: predicted (published, difference in points)')
    yield from _rows(cells, lambda one: f"{one['percent']:.1f} ({one['published']:g}, "
                     + ('fitted)' if one['fitted'] else f"{one['difference']:+.1f})"))
    yield (f'compute rate {where.rate_of(application):g} Mflop/s by {Path(where.path).name}; overhead per message and side '
           f'{fitted.overhead:.2f} us, fitted to one cell; the others are predicted')
    for what, value in ('prediction', 'percent'), ('base line, messages x latency over it and flops / rate', 'base_line'):
        mean, largest = study.differences(cells, value)
        yield f'{what}: mean absolute difference of the {cells.height - 1} cells {mean:.2f} points, largest {largest:.2f}'
    latencies = cells['latency']
    yield (f'growth from {latencies.min():g} to {latencies.max():g} us, predicted over published: '
           + ', '.join(f'{ratio:.2f} with {processes} processes' for processes, ratio in study.growth(cells).items()))
    yield from (f'not monotone: {line}' for line in study.falls(cells))
    if sensitivity:
        yield (f"\n{'20 % less, and more':28} {'source':18} {'value':14} {'mean':>8} {'largest':>8}   growth")
        yield f"{'as predicted':28} {'':18} {'':14} {_told(cells)}"
        for name, source, value, found in study.sensitivity(simulated, where, application, folder, fitted.overhead):
            for one in found:
                yield f'{name:28} {source:18} {value:14} {_told(one)}'


def answer(path, application, processes, latency, size, iterations, published, sensitivity=False):
    '''The lines of the answer, as they come.

    :arg processes: text, for :func:`processes_of`; None for 64.
    :arg latency: text, for :func:`latencies_of`; :obj:`None` for the file's own.
    :arg sensitivity: whether, with it, how far it moves with each number that it rests on.
    :raises PlumblineError: for bad input, or where SimGrid is not there.
    '''
    where = network.load(path)
    if application not in program.APPLICATIONS:
        raise PlumblineError(f"--application {application}: there are {', '.join(program.APPLICATIONS)}")
    if sensitivity and not published:
        raise PlumblineError('--sensitivity: it is that of the published table; give --published as well')
    asked = {'--processes': processes, '--latency': latency, '--size': size, '--iterations': iterations}
    if published and (other := next((name for name, given in asked.items() if given), None)):
        raise PlumblineError(f"{other}: those of the published table are its source's; leave it out, or --published")
    where.rate_of(application)
    counts, size = processes_of(processes or '64'), size or 'A'
    latencies = latencies_of(latency, where.latency) if latency else [where.latency]
    simulated = program.build(program.FOLDER / 'build')
    with tempfile.TemporaryDirectory(prefix='stage-', dir=program.FOLDER) as stage:
        if published:
            yield from _published(simulated, where, application, stage, sensitivity)
        elif len(counts) == 1 and len(latencies) == 1 and latencies[0] != where.latency:
            yield from study.cost(simulated, where, application, counts[0], latencies[0], stage, size, iterations).lines
        else:
            cells = study.table(simulated, where, application, [(n, one) for n in counts for one in latencies], stage, size, iterations)
            yield f'{application} of size {size}: per cent of the time in communication routines, by latency'
            yield from _rows(cells, lambda one: f"{one['percent']:.1f}")
            if len(counts) > 1:
                yield f'parallel efficiency against {min(counts)} processes, per cent'
                yield from _rows(study.efficiency(cells), lambda one: f"{one['efficiency']:.1f}")
