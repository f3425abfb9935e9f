'''A session for machines: a summary as JSON (``schemas/summary.json``), and of it the text that node-exporter's textfile collector reads.'''

import json
import re

from plumbline.model import parameters, quantity
from plumbline.model.safe_text import shown

SCHEMA_VERSION = 2

#: Unit of the registry -> (what is measured, Prometheus's base unit, factor); another suite's metric of another unit has that as a label.
_UNITS = {'MB/s': ('bandwidth', 'bytes_per_second', 1e6), 'Mflop/s': ('flops', 'operations_per_second', 1e6), 'MHz': ('clock', 'hertz', 1e6),
          'us': ('time', 'seconds', 1e-6), 's': ('time', 'seconds', 1.0), 'bytes': ('size', 'bytes', 1.0), 'entries': ('table', 'entries', 1.0),
          '1': ('value', 'ratio', 1.0)}

#: Which way of a metric: key of the summary -> (part of the name, what it is).
_SIDES = {'value': ('', 'median of the last session'), 'reference': ('reference_', 'what it is judged by'),
          'low': ('lower_bound_', 'below this a FAIL'), 'high': ('upper_bound_', 'above this a FAIL')}


def summary(session, losses=(), courses=()):
    '''What a session says, as :mod:`json` writes it.

    :arg session: :class:`plumbline.analysis.session.Session`.
    :arg losses: that have come to stay, each a :class:`plumbline.report.history.Loss`.
    :arg courses: titles of all courses that end with this session.
    '''
    rows, found = session.rows, session.diagnosis
    return {
        'schema': SCHEMA_VERSION, 'session': rows['session'][0], 'system': rows['system'][0],
        'mode': _asked(session, 'mode'), 'partition': _asked(session, 'system').partition(':')[2],
        'started': rows['started'][0].timestamp(), 'seconds': session.info.get('time_elapsed'),
        'exit_status': session.exit_status(losses), 'not_judged': session.not_judged(losses), 'counts': session.counts,
        'answers': [{'question': one.question, 'verdict': one.verdict, 'text': one.text} for one in session.answers],
        'subsystems': [{'subsystem': one.name, 'of': one.kind, 'question': one.question, 'verdict': one.verdict, 'reason': one.reason,
                        'change': _number(one.change), 'sees': _number(one.sees), 'judged': one.count, 'metrics': one.total}
                       for one in session.judged.subsystems],
        'causes': [{'name': one.rule['name'], 'title': one.title, 'hosts': list(one.hosts), 'evidence': list(one.evidence), 'look': one.rule['look'],
                    'confidence': one.rule['confidence']} for one in found.findings],
        'no_cause_fits': found.unexplained, 'losses': list(map(str, losses)),
        'courses': [{'name': name, 'loss': text} for name, text in {**dict.fromkeys(courses), **{one.name: one.text for one in losses}}.items()],
        'metrics': [_metric(line) for line in session.verdicts],
        'not_measured': [{'partition': one.partition, 'environment': one.environ, 'check': one.check, 'test': one.test or one.label,
                          'metric': one.metric, 'reason': one.reason, 'recorded': one.recorded} for one in session.not_measured]}


def _asked(session, option):
    '''What ReFrame's command line says, the last time, by an option; '' where it has none.'''
    return next(reversed(re.findall(rf'\s--{option}[ =](\S+)', session.info.get('cmdline') or '')), '')


def _metric(line):
    return {'partition': line.partition, 'environment': line.environ, 'host': line.hostname, 'check': line.check,
            'test': parameters.as_words(line.shown_test), 'metric': line.metric, 'question': line.question, 'subsystem': line.subsystem,
            'value': _number(line.value), 'unit': line.unit, 'reference': _number(line.reference), 'low': _number(line.low),
            'high': _number(line.high), 'sees': _number(line.sees), 'verdict': line.verdict, 'reason': line.reason,
            'maintainers': line.detail.maintainers or []}


def _number(value):
    '''JSON has neither NaN nor infinity.'''
    return value if quantity.known(value) else None


def as_json(found):
    return json.dumps(found, indent=1, allow_nan=False) + '\n'


def prometheus(found):
    '''The text of Prometheus's exposition format, of a :func:`summary`.

    Rates, times and sizes are in base units; the age of a session is the time now less its start.  Each sample has the session's mode, and its
    partition where it was of one: these have files of their own, and node-exporter refuses what is in two files with the same labels.
    '''
    families: dict[str, tuple[str, dict]] = {}

    its = {'system': found['system'], **{name: found[name] for name in ('mode', 'partition') if found[name]}}

    def add(name, about, value, **labels):
        '''One sample; of two with the same labels the last counts: node-exporter refuses a file that has both.'''
        if value is not None:
            families.setdefault(name, (about, {}))[1][tuple({**its, **labels}.items())] = value

    add('plumbline_session_start_time_seconds', 'Start of the last session, since 1970', found['started'])
    add('plumbline_session_duration_seconds', 'How long the last session took', found['seconds'])
    add('plumbline_session_exit_status', '0 healthy, 1 FAIL, 2 nothing measured, 3 could not be judged', found['exit_status'])
    for question, counts in found['counts'].items():
        for name, number in counts.items():
            add('plumbline_session_verdicts', 'Verdicts of the last session, of each question its own', number, question=question, verdict=name)
    add('plumbline_session_not_measured', 'What was not measured', len(found['not_measured']))
    add('plumbline_session_lasting_losses', 'Losses that have come to stay', len(found['losses']))
    for one in found['answers']:
        add('plumbline_answer_info', 'Verdict on software, speed and measurement', 1, question=one['question'], verdict=one['verdict'])
    for one in found['subsystems']:
        what = {'subsystem': one['subsystem'], 'of': one['of']}
        add('plumbline_subsystem_change_ratio', 'Change since the sessions of the references, a loss below 0', one['change'], **what)
        add('plumbline_subsystem_verdict_info', 'Verdict on a subsystem', 1, **what, verdict=one['verdict'])
    for one in found['causes']:
        for host in one['hosts'] or ['']:
            add('plumbline_cause_info', 'What is wrong', 1, host=host, cause=one['name'], confidence=one['confidence'])
    for one in found['metrics']:
        what = {key: one[key] for key in ('partition', 'environment', 'host', 'test', 'metric')}
        kind, unit, factor = _UNITS.get(one['unit'], ('other', 'value', 1.0))
        of_unit = what if one['unit'] in _UNITS else what | {'unit': one['unit']}
        for key, (part, about) in _SIDES.items():
            value = None if one[key] is None else one[key] * factor
            add(f'plumbline_{kind}_{part}{unit}', f'{kind.capitalize()}: {about}', value, **of_unit)
        add('plumbline_verdict_info', 'Verdict on a metric', 1, **what, verdict=one['verdict'])
    text = []
    for name, (about, samples) in families.items():
        text += [f'# HELP {name} {about}', f'# TYPE {name} gauge', *(f'{name}{_labels(labels)} {value!r}' for labels, value in samples.items())]
    return '\n'.join([*text, ''])


def _labels(pairs):
    return '{' + ','.join(f'{name}="{_escaped(value)}"' for name, value in pairs) + '}'


def _escaped(text):
    return shown(str(text)).replace('\\', '\\\\').replace('"', '\\"').replace('\n', '\\n')
