'''What the check ``latency_simulated`` runs: the prediction of a published table, as one line of JSON.

``python -m plumbline.simulation.predict NETWORK APPLICATION MOST``: in the current folder, up to MOST processes.  Without SimGrid the line says so.
'''

import dataclasses
import json
import sys

from plumbline.errors import PlumblineError
from plumbline.simulation import network, program, study

#: What the line begins with.
PREFIX = '{"predicted":'


def prediction(path, application, most):
    '''The object of the line.

    :arg path: network file; :arg most: processes, at most.
    :returns: ``predicted`` (application), then ``missing`` (why nothing was simulated), or ``source``, ``compute_rate``
        (Mflop/s), ``calibration`` (:class:`study.Calibration`), ``cells`` (rows of :func:`study.predict`), ``falls``.
    '''
    if reason := program.missing():
        return {'predicted': application, 'missing': reason}
    where = network.load(path)
    fitted, cells = study.predict(program.build('build'), where, application, '.', most)
    return {'predicted': application, 'source': study.source_of(application), 'compute_rate': where.rate_of(application),
            'calibration': dataclasses.asdict(fitted), 'cells': cells.to_dicts(), 'falls': study.falls(cells)}


def parse(text):
    '''The object of the line in a job's output.

    :raises PlumblineError: where there is none, or not all of it.
    '''
    line = next((line for line in text.splitlines() if line.startswith(PREFIX)), None)
    if line is None:
        raise PlumblineError('the simulation has printed no prediction; its standard error says why')
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        raise PlumblineError('the prediction of the simulation is cut off; its standard error says why') from None


def main():
    '''Errors that have a cure are one line on standard error, and exit code 2.'''
    try:
        path, application, most = sys.argv[1:]
        print(json.dumps(prediction(path, application, int(most))))
    except PlumblineError as error:
        print(f'plumbline: {error}', file=sys.stderr)
        sys.exit(2)


if __name__ == '__main__':
    main()
