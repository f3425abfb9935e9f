'''What a site is proposed to do with a node: take it out of service, with a ticket's text; put it back, once it was repaired and is healthy.

Nothing of it is done here.  A command of the site's (``--hook``) may be told.
'''

from dataclasses import asdict, dataclass

import polars as pl

from plumbline.analysis.answers import some
from plumbline.model import quantity
from plumbline.model.safe_text import shown
from plumbline.nodes import events, history
from plumbline.sweep import findings, ranking
from plumbline.sweep.outliers import drain_command
from plumbline.sweep.slurm import folded, when
from plumbline.system import site_command

DRAIN, RETURN = 'drain', 'return'


@dataclass(frozen=True)
class Proposal:
    '''
    :attr action: :data:`DRAIN` or :data:`RETURN`; :attr command: the line that does it, as a shell has it.
    :attr ticket: text for people.
    :attr evidence: of :func:`findings.evidence`.
    '''
    node: str
    action: str
    command: str
    ticket: str
    evidence: dict


def follow_up(work, found=None):
    '''Write down what a sweep found of its nodes, tell the site's command what is proposed; yield lines for people.

    :arg work: :class:`plumbline.sweep.state.Sweep`.
    :arg found: :class:`plumbline.sweep.outliers.Findings`; None where nothing was measured.
    :raises PlumblineError: if the journal cannot be written, or the command fails: the next sweep, or this one resumed, proposes the same.
    '''
    findings.record(work, found)
    if found is None:
        return
    system, hook = findings.system_of(work), work.plan.get('hook')
    known, begun = history.read(system, archive_root=None), events.begun(work.name)
    new = []

    def of(name):       # a node of this sweep may have another name since
        return known.of(known.names.now(name, begun))
    for node in found.named:
        yield f'{node}: {_times(of(node))}; ticket: plumbline nodes ticket {of(node).name}'
        if not _is_open(of(node), hook):
            new.append(of_outlier(system, of(node)))
    others = {node: '; '.join(_told(event.get('evidence', {}))) for node in work.nodes if node not in found.named
              and (event := of(node).findings.get(work.name))}
    for text in dict.fromkeys(others.values()):
        alike = [node for node in others if others[node] == text]
        yield f'{folded(alike)}: {text}; ticket: plumbline nodes ticket {of(alike[0]).name}'
    measured = sum(node.measured for node in work.nodes.values())
    if 2 * len(others) > measured >= ranking.FEWEST:
        yield f'{len(others)} of {measured} nodes are not in order though no outliers: look at what they share; nothing is proposed for them'
    else:
        new += [of_outlier(system, of(node)) for node in others if not _is_open(of(node), hook)]
    for node in _repaired(work, known):
        why, proposal = _back_in_service(work, found, known.of(node))
        yield f'{node}, repaired at {when(known.of(node).done["at"])}: {why}'
        if proposal:
            yield f'  to put it back (not done here): {proposal.command}'
            yield f'  and then: plumbline nodes mark {node} returned --reason ...'
            new += [] if _is_proposed(known.of(node), RETURN, hook) else [proposal]
    if hook and new:
        text = '\n'.join(one.ticket for one in new)
        site_command.run('--hook', hook, text, {'sweep': work.name, 'system': system, 'proposals': [asdict(one) for one in new]},
                         'the next sweep proposes the same again')
        yield f"told by --hook: {', '.join(one.node for one in new)}"
    events.append(system, [{'node': one.node, 'event': events.PROPOSED, 'sweep': work.name, 'action': one.action, 'command': one.command,
                            'how': 'hook' if hook else 'printed'} for one in new])


def _is_open(node, hook):
    '''Whether it is proposed to drain it already, or it is drained, and nobody has repaired it or put it back since.'''
    return (bool(node.steps) and node.steps[-1]['event'] == events.DRAINED) or _is_proposed(node, DRAIN, hook)


def _is_proposed(node, action, hook):
    '''Whether this is what was last proposed, to the site's command if there is one: that knows nothing of what was only printed.'''
    last = node.proposal or {}
    return last.get('action') == action and (not hook or last.get('how') == 'hook')


def _times(node):
    count, sweeps = node.offences()
    good = f'last seen good {when(node.last_good)}' if node.last_good else 'never seen good'
    return f'an outlier in {count} of its last {quantity.several(sweeps, "sweep")}, {good}'


def of_outlier(system, node):
    '''What is proposed for a node that a sweep has named, found not to be in order, or could not measure.

    :arg node: :class:`history.Node` with a finding, or that is unmeasured.
    '''
    failed, before = node.unmeasured or {}, node.last
    event = [failed, *(node.findings.values() if not failed or (before and before.is_bad) else ())][-1]     # what was well since is no finding of now
    evidence, sweep = event.get('evidence', {}), event.get('sweep', '')
    rows, told = _rows(evidence.get('rows')), _told(evidence)
    told += [f"{failed.get('state', 'failed')} {when(failed['at'])}: {failed.get('reason', '')}"] if failed else []
    about = (rows[0]['what'], pl.Series([rows[0]['off']])) if rows else ('; '.join(told)[:150] or 'see its page',)
    command = drain_command(sweep, [node.name], *about)
    lines = [f"Node {node.name} of {system} is {'an outlier among its peers' if rows else 'not in order'}", '', *told]
    for row in rows[:findings.MOST]:
        lines.append(_line(row))
        lines += [f'  {_line(one)}' for one in _rows(row.get('metrics'))[:findings.MOST]]
    if (left := len(rows) - findings.MOST) > 0:
        lines.append(f"and {quantity.several(left, 'more row')} on the page")
    causes = [cause for cause in evidence['causes'] if isinstance(cause, str)] if isinstance(evidence.get('causes'), list) else []
    lines += ['', f"cause, as far as the node tells it: {'; '.join(causes) or 'not known'}", f'seen: {_times(node)}',
              *(f'{step["event"]} {when(step["at"])}: {step.get("reason", "")}' for step in node.steps if step['event'] != events.PROPOSED),
              f"sweep: {sweep}, page: {event.get('page', 'none')}", '']
    if failed.get('state') in events.OUT_OF_SERVICE:
        lines += [f'it is out of service; once it is repaired: plumbline nodes mark {node.name} repaired --reason ...', '']
    else:
        lines += [f'to take it out of service: {command}', f'then: plumbline nodes mark {node.name} drained --reason ...', '']
    return Proposal(node.name, DRAIN, command, '\n'.join(map(shown, lines)), evidence)


def _told(evidence):
    texts = evidence.get('told')
    return [text for text in texts if isinstance(text, str)] if isinstance(texts, list) else []


def _rows(rows):
    '''Rows of evidence that are whole.'''
    return [{key: value for key, value in row.items() if key not in ('median', 'again') or isinstance(value, float)}
            for row in findings.whole(rows, {'what': str, 'check': str, 'unit': str, 'off': float, 'value': float})]


def _line(row):
    '''A subsystem or a metric of a node beside its peers.'''
    again = f", measured again {quantity.amount(row['again'], row['unit'], row['value'])}" if row.get('again') is not None else ''
    if row.get('name') == 'score':
        return f"subsystem {row['what']}: {quantity.change(row['off'])} against its peers, by {row.get('members', '?')} metrics{again}"
    return (f"{row['check']} {row['what']}: {quantity.amount(row['value'], row['unit'])}, its peers' median "
            f"{quantity.amount(row.get('median'), row['unit'], row['value'])} ({quantity.change(row['off'])}), rank {row.get('rank', '?')} of "
            f"{row.get('peers', '?')}{again}")


def _repaired(work, known):
    '''Nodes of a sweep that were repaired before it measured them.'''
    for node in work.nodes.values():
        done = known.of(node.name).done
        if node.measured and done and done['event'] == events.REPAIRED and node.at > done['at']:
            yield node.name


def _back_in_service(work, found, node):
    '''(What is to be said of a repaired node that was measured, the :class:`Proposal` to put it back, or None).'''
    name, last = node.name, next((one for one in reversed(node.measured) if one.sweep == work.name), None)
    if last is None:
        return 'not known whether it is healthy: this sweep measured it in the future, by this clock or that of its host; measure it again', None
    # By a clock that was ahead another one may be the last; by a sweep that was resumed late, this may not be.
    if bad := next((one for one in (last, node.last) if one.is_bad), None):
        return f'not to be put back: {bad.word}', None
    if node.unmeasured:     # measured again, or later
        return f'not to be put back: {node.doubt}', None
    command = f'scontrol update nodename={name} state=resume'
    evidence: dict = next((its for event in reversed(node.findings.values()) if (its := event.get('evidence', {})).get('rows')), {})
    back, off, missing = findings.changed_since(evidence, found.frame, name)
    if off:
        return f"not to be put back: still off: {some(off, findings.MOST, '; ')}", None
    lacked = next((one.lacks for one in reversed(node.measured) if one.lacks or one.rank == events.IN_ORDER), '')
    if missing or lacked or (not back and not last.is_good):
        why = (f'not measured again: {some(missing)}; run these checks on it' if missing else
               f"{f'beside peers it had {lacked}' if lacked else 'no metric was judged'}; measure it with two peers or more of its kind")
        return f'not known whether it is healthy: {why}', None
    how = ['no FAIL'] + (['in order among its peers'] if last.rank == events.IN_ORDER else [])
    how += [some(back, findings.MOST, '; ')] if back else []
    ticket = [f'Node {name} of {work.plan["partition"]} is healthy again', '', *how, '', f'to put it back: {command}',
              f'then: plumbline nodes mark {name} returned --reason ...', '']
    return f"healthy again: {'; '.join(how)}", Proposal(name, RETURN, command, '\n'.join(map(shown, ticket)), evidence)
