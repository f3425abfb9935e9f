'''Who is told that the state of a system has changed, and of what: a command of the site's, once for each change, not every night.

The state of a system is what is wrong with it: metrics and tests that FAIL, subsystems, losses that last, and what could not be judged, as all
of a session that was disturbed.
It is kept in ``notified-SYSTEM.json`` beside the archive, as of the last sessions of which the command has taken the notice: one that it
did not take is tried again by the next session.
'''

import json
from collections import Counter
from pathlib import Path

from plumbline import atomic
from plumbline.errors import PlumblineError, saying_why
from plumbline.model import registry, verdict
from plumbline.model.safe_text import shown
from plumbline.store import archive
from plumbline.system import site_command

NOT_JUDGED = 'COULD NOT BE JUDGED'

#: No more are listed in the text; the JSON has all.
_MOST_NAMED = 20

#: A session that ended so long before another may be told of after it, seconds: partitions have schedules of their own, and reports take a while.
_MEANWHILE = 3600


def wrong(summary):
    '''(Name -> what is wrong with it, for a session; name -> PASS, or KNOWN ISSUE, of what is not).

    :arg summary: of :mod:`telemetry`.
    :returns: two: dictionary name -> ``of`` (the question; ``tests``, ``history`` or ``session`` where it is of none), ``state`` (FAIL or
        :data:`NOT_JUDGED`), ``reason`` and ``maintainers``; dictionary.
    '''
    found: dict[str, dict] = {}
    good: dict[str, str] = {}
    tests: dict[tuple, list] = {}
    for one in summary['metrics']:
        anywhere = ' '.join(filter(None, (one['test'], one['partition'], one['environment'])))
        where = f"{anywhere} {one['host']}".rstrip()
        name = f"{where}: {one['metric'] or 'the test'}"
        tests.setdefault((where, tuple(one['maintainers'])), []).append((one['verdict'], one['sees']))
        if one['verdict'] == verdict.FAIL:
            found[name] = {'of': one['question'], 'state': verdict.FAIL, 'reason': one['reason'], 'maintainers': one['maintainers']}
        elif one['verdict'] in (verdict.PASS, verdict.KNOWN_ISSUE):
            good[name] = one['verdict']
        if one['metric'] or one['verdict'] == verdict.PASS:       # it ran; where it had not, no host was known
            good |= dict.fromkeys((f'{where}: the test', f'{anywhere}: the test', f'not measured: {anywhere}'), verdict.PASS)
            place = f"{one['check']}/{summary['system']}:{one['partition']}"        # as the references have what did not run
            good |= dict.fromkeys((f'not measured: {place}', f"not measured: {place}/{one['environment']}"), verdict.PASS)
    for (where, maintainers), judged in tests.items():
        if verdict.is_undecided(judged) and all(ruling != verdict.FAIL for ruling, _ in judged):
            found[f'{where}: the test'] = {'of': 'tests', 'state': NOT_JUDGED, 'reason': 'its samples scatter too much, or its runs differ',
                                           'maintainers': list(maintainers)}
    of_one = f" of {summary['partition']}" if summary['partition'] else ''       # another one's session says nothing of it
    for one in summary['answers']:
        if one['question'] == registry.MEASUREMENT and one['verdict'] == verdict.UNSTABLE:
            found[f'the measurement{of_one}'] = {'of': one['question'], 'state': NOT_JUDGED, 'reason': one['text'], 'maintainers': []}
        elif one['question'] == registry.MEASUREMENT and one['verdict'] != verdict.FAIL:
            good[f'the measurement{of_one}'] = verdict.PASS
    partitions = {one['partition'] for one in summary['metrics'] if one['metric']}
    only = partitions.pop() if len(partitions) == 1 else ''     # of several each subsystem has its own in its name
    for one in summary['subsystems']:
        name = f"subsystem {one['subsystem']}{f' of {only}' if only else ''}: {one['of']}"
        if one['verdict'] in (verdict.FAIL, verdict.UNSTABLE):
            state = verdict.FAIL if one['verdict'] == verdict.FAIL else NOT_JUDGED
            found[name] = {'of': one['question'], 'state': state, 'reason': one['reason'], 'maintainers': []}
        elif one['verdict'] == verdict.PASS:
            good[name] = verdict.PASS
    for one in summary['not_measured']:
        if one['recorded']:
            name = f"not measured: {' '.join(filter(None, (one['test'], one['partition'], one['environment'])))}"
            found[name] = {'of': 'tests', 'state': NOT_JUDGED, 'reason': one['reason'], 'maintainers': []}
    hosts = {one['host'] for one in summary['metrics']} - {''}
    for one in summary['courses']:
        name = f"lasting loss: {one['name']}"
        if one['loss']:
            found[name] = {'of': 'history', 'state': verdict.FAIL, 'reason': one['loss'], 'maintainers': []}
        else:
            good[name] = verdict.PASS
        of, _, kind = one['name'].rpartition(', ')
        good |= {f'lasting loss: {of} on {host}, {kind}': verdict.PASS for host in hosts if len(hosts) == 1}     # it has no course of its own
    status = summary['exit_status']
    its = {'of': 'session', 'state': NOT_JUDGED, 'reason': summary['not_judged'], 'maintainers': []}
    if status == 2:
        found[f'the session as a whole{of_one}'] = its
    elif not summary['not_judged'].startswith('BROKEN OFF'):
        good[f'the session as a whole{of_one}'] = verdict.PASS
    if status == 3 and not found:
        found[f'the session{of_one}'] = its
    elif status == 0:       # beside a FAIL, too, something may not have been judged
        good[f'the session{of_one}'] = verdict.PASS
    return found, good


def changes(before, summary):
    '''What has changed since a state.

    :arg before: name -> as of :func:`wrong`, of the sessions before.
    :returns: (list of changes, dictionaries with ``name``, ``of``, ``was``, ``now``, ``reason``, ``maintainers``; the state now).
    '''
    now, good = wrong(summary)
    # What this session has not measured stays as it was: another mode may have run.
    gone = {name: good[name] for name in before if name not in now and name in good}
    found = [{'name': name, 'was': before.get(name, {}).get('state', verdict.PASS), 'now': one['state'], **one} for name, one in now.items()
             if before.get(name, {}).get('state') != one['state']]
    found += [{'name': name, 'was': before[name]['state'], 'now': ruling, **before[name]} for name, ruling in gone.items()]
    state = {name: one for name, one in before.items() if name not in gone} | now
    return [{key: one[key] for key in ('name', 'of', 'was', 'now', 'reason', 'maintainers')} for one in found], state


def text(summary, changed, link):
    '''What a person reads: one line of all, then one for each change, what is wrong, and where the report is.'''
    words = {verdict.FAIL: 'FAIL', NOT_JUDGED: 'could not be judged', verdict.KNOWN_ISSUE: 'a known issue now', verdict.PASS: 'healthy again'}
    counts: dict[str, Counter] = {name: Counter() for name in registry.QUESTIONS}       # which come first
    for one in changed:
        counts.setdefault(one['of'], Counter())[one['now']] += 1
    of_each = [f"{name} {', '.join(f'{its[kind]} {text}' for kind, text in words.items() if its[kind])}" for name, its in counts.items() if its]
    said = [f"Plumbline, {summary['system']}: {'; '.join(of_each)} (session {summary['session']}), {link}", '']
    for one in changed[:_MOST_NAMED]:
        whom = f"; maintainers: {', '.join(one['maintainers'])}" if one['maintainers'] else ''
        why = '' if one['now'] in (verdict.PASS, verdict.KNOWN_ISSUE) else f": {one['reason']}"
        said.append(f"{one['was']} -> {one['now']}: {one['name']}{why}{whom}")
    said += [f'and {len(changed) - _MOST_NAMED} more'] if len(changed) > _MOST_NAMED else []
    said += [f"what is wrong: {one['title']}: {'; '.join(one['evidence'])}" for one in summary['causes']]
    return '\n'.join(shown(' '.join(line.split())) for line in said) + '\n'


def tell(command, summary, archive_root, link, patience=site_command.PATIENCE):
    '''Run a command where the state of the system has changed.

    It is started without a shell: the text is its standard input; ``PLUMBLINE_NOTICE`` names a file with the same as JSON (``changes``,
    ``link``, and the ``summary``), which is there until it ends.

    :arg command: as in a shell, words in quotes.
    :returns: whether it was run.
    :raises PlumblineError: in one line, if it cannot be started, fails, or takes longer than ``patience`` seconds.
    '''
    path = Path(archive_root) / f"notified-{summary['system']}.json"
    ended = summary['started'] + (summary['seconds'] or 0)
    with atomic.alone(path.with_suffix('.lock')):
        told, before = _read(path)
        latest = max([ended, *told.values()])
        if summary['session'] in told or ended < latest - _MEANWHILE:
            return False
        changed, state = changes(before, summary)
        if changed:
            site_command.run('--notify', command, text(summary, changed, link), {'changes': changed, 'link': link, 'summary': summary},
                             'the next session tells the same again', patience)
        told = {session: at for session, at in told.items() if at >= latest - _MEANWHILE} | {summary['session']: ended}
        with saying_why(f'{path}: cannot be written', '; the next session tells the same again'):
            atomic.write(path, json.dumps({'told': told, 'wrong': state}, indent=1), atomic.RESULT)
    return bool(changed)


def failure(*arguments):
    ''':func:`tell`, and in one line why nobody was told; '' where all is well.'''
    try:
        tell(*arguments)
    except PlumblineError as error:
        return str(error)
    return ''


def _read(path):
    '''(Sessions that were told of last -> when they ended, without those of a clock that was wrong; what was wrong then).'''
    try:
        found = json.loads(path.read_text(encoding='utf-8'))
        before, told = found['wrong'], found.get('told', {})        # older versions kept the name of one session
        if not all(isinstance(text, str) for text in (*(one[key] for one in before.values() for key in ('of', 'state', 'reason')),
                                                      *(who for one in before.values() for who in one['maintainers']))):
            raise ValueError('a text is none')
        if not all(isinstance(at, (int, float)) for at in told.values()):
            raise ValueError('a time is none')
        return {session: at for session, at in told.items() if not archive.is_ahead(session)}, before
    except FileNotFoundError:
        return {}, {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise PlumblineError(f'{path}: not readable as the last state ({error}); remove it, and the next session tells all that is wrong') from None
