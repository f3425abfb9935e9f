'''What `plumbline bench` says of a figure, and that one kernel's failure does not lose the others' figures.'''

import numpy as np
import pytest
from typer.testing import CliRunner

from plumbline import bench
from plumbline.bench.common import Figure
from plumbline.cli import app
from plumbline.errors import PlumblineError

SAMPLES = np.array([1.0, 2.0, 3.0, 4.0, 5.0])


@pytest.mark.parametrize('figure, line', [
    (Figure('a / b', SAMPLES, 2.5), 'met           a / b: 3.000 (2.000 .. 4.000, 5 samples), at least 2.5'),
    (Figure('a / b', SAMPLES, 3.5, remark='then 4'), 'MISSED        a / b: 3.000 (2.000 .. 4.000, 5 samples), at least 3.5, then 4'),
    (Figure('a / b', SAMPLES, most=2), 'MISSED        a / b: 3.000 (2.000 .. 4.000, 5 samples), at most 2'),
    (Figure('a / b', SAMPLES), 'no target     a / b: 3.000 (2.000 .. 4.000, 5 samples)'),
    (Figure('a / b', np.array([]), remark='b is not there'), 'NOT MEASURED  a / b: b is not there'),
])
def test_the_line_of_a_figure(figure, line):
    assert figure.line == line
    assert figure.met == (not line.startswith(('MISSED', 'NOT')))


def test_what_cannot_be_measured_is_said_and_the_others_are_measured(monkeypatch):
    def failing(machine, pairs):
        raise PlumblineError('no library to compare with')

    def measured(machine, pairs):
        yield Figure('a / b', SAMPLES, 1)

    monkeypatch.setattr(bench, 'Machine', lambda folder: None)
    monkeypatch.setattr(bench, 'FIGURES', {'one': failing, 'other': measured})
    done = CliRunner().invoke(app, ['bench', 'one', 'other'])
    assert done.exit_code == 1
    assert done.output.splitlines()[0] == 'NOT MEASURED  one: no library to compare with'
    assert done.output.splitlines()[1].startswith('met           a / b')
    assert CliRunner().invoke(app, ['bench', 'other']).exit_code == 0
