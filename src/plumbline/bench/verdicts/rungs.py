'''What each rung of the ladder (docs/howto/gate.rst) sees: sessions judged by those of their tests that a mode has.'''

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl

from plumbline.analysis.session import Session
from plumbline.bench.verdicts.faults import FAULTS
from plumbline.bench.verdicts.table import NULL, exits, grid
from plumbline.errors import PlumblineError
from plumbline.model import quantity, verdict
from plumbline.settings import ROOT

#: Modes that vet one node.
RUNGS = ('node', 'screen')


def tests_of(place, mode):
    '''What ReFrame calls the tests of a mode, a set.

    :raises PlumblineError: if it lists none.
    '''
    done = subprocess.run([Path(sys.executable).with_name('reframe'), '-C', ROOT / 'config/localhost.py', '-c', ROOT / 'checks', '-R',
                           f'--mode={mode}', '-l'], env=place.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    found = set(re.findall(r'^- (.+) /[0-9a-f]{8}$', done.stdout, re.M))
    if not found:
        raise PlumblineError(f'reframe --mode={mode} -l lists no test: {done.stdout[-300:]}{done.stderr[-300:]}')
    return found


def judged(place, session, tests):
    '''A session as if it had these tests alone (:class:`plumbline.analysis.session.Session`).'''
    return Session(place.rows(session).filter(pl.col('display_name').is_in(tests)))


def lines(place, quiet, faulty):
    '''Lines of the table; none without sessions of both kinds.

    :arg quiet, faulty: lists of :class:`session.Session` that measured something, without a fault and with one.
    '''
    quiet = [one for one in quiet if one.kind == NULL]      # others were judged without references
    if not quiet or not faulty:
        return []
    rows = [['rung', 'found (exit code 1)', 'not found', 'without a fault', 'half of the PASSes']]
    for rung in RUNGS:
        tests = tests_of(place, rung)
        missed = [f'{FAULTS[one.kind].what} ({code})' for one in faulty if (code := judged(place, one, tests).exit_status()) != 1]
        healthy = [judged(place, one, tests) for one in quiet]
        sees = pl.concat([one.rows.filter(verdict=verdict.PASS)['sees'] for one in healthy]).drop_nulls()
        rows.append([f'``{rung}``', f'{len(faulty) - len(missed)} of {len(faulty)}', ', '.join(missed) or 'none',
                     exits(one.exit_status() for one in healthy), f'would see {quantity.percent(np.median(sees), 0)}' if len(sees) else '-'])
    return ['', *grid(rows)]
