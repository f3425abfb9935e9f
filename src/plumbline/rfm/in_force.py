'''The references that a test's metrics are judged by: those of its check and of the files, less what is of another test, team or working set.'''

from dataclasses import replace

from reframe.utility import ScopedDict

from plumbline import references
from plumbline.errors import PlumblineError
from plumbline.model import baselines, contention, parameters, records, registry, result
from plumbline.model.quantity import several, size
from plumbline.model.result import as_given


def in_force(check, known, found):
    '''Name -> :class:`references.Known` of the metrics; that some do not apply is said in the check's result.

    :arg known: what the files have (:func:`references.applying`).
    :arg found: name -> list of :class:`evaluation.Case`.
    :raises PlumblineError: if the check's own reference is in another unit than its metric.
    '''
    shipped = _by_baselines(found)
    known = {name: replace(one, beneath=one.beneath or shipped.get(name)) for name, one in known.items()}
    known = shipped | _as_given(check, _of_the_same_test(check, known)) | _own_references(check)
    return _of_the_same_sets(check, _of_the_same_team(check, known), found)


def _by_baselines(found):
    '''Name -> :class:`references.Known` of the metrics that a shipped baseline predicts.'''
    return {name: references.Known(baselines.PATH.name, [references.Reference(cases[0].metric.baseline)])
            for name, cases in found.items() if cases[0].metric.baseline}


def _own_references(check):
    '''What the check says itself for this partition (``reference``): it goes before the files.'''
    found: dict[str, references.Known] = {}
    try:
        own_ones = check.reference.scope(check.current_partition.fullname) if isinstance(check.reference, ScopedDict) else check.reference[check]
    except KeyError:        # its own $index has nothing for this test
        return found
    for name, own in own_ones.items():
        ticket, own = (own.message, own.data) if hasattr(own, 'message') else (None, own)       # ReFrame's xfail()
        expected = registry.find(name.partition('.')[0]).unit
        *leaf, unit = own if len(own) == 4 else (*own, None)
        if unit != expected:
            raise PlumblineError(f"the reference of {name} in the check is in {unit or 'no unit'}: it is in {expected}")
        found[name] = references.Known('the check', [references.Reference(tuple(leaf), known_issue=ticket)])
    return found


def _of_the_same_test(check, known):
    '''What is known of the metrics, without recorded references where the command line gave variables of the test (``-P``).'''
    variables = parameters.varied(parameters.of_display_name(check.display_name)[1])
    others = [name for name, one in known.items() if variables and one.file not in baselines.SHIPPED]
    return _without(check, known, others, f"they are of the test without -P {', '.join(variables)}")


def _as_given(check, known):
    '''What is known of the metrics, without recorded references of other sizes, or other work, than the command line, or a mode, gave (``-S``).'''
    now = check.plumbline.given or {}

    def why(others):
        were = sorted({as_given(one.given or {}) for name in others for one in known[name].references})
        return f"they are of {', of '.join(were)}, and this is of {as_given(now)}"
    return _fitting(check, known, {name: one if one.file in baselines.SHIPPED else one.of_given(now) for name, one in known.items()}, why)


def _of_the_same_team(check, known):
    '''What is known of the metrics, without references of another number of threads, or ranks: ``all`` are as many as a quota lets run, or as nodes
    are idle.  Of metrics that were not measured, too: another number may have others.'''
    team = check.plumbline.ranks or check.plumbline.team or contention.team(check.plumbline.contention or ())

    def why(others):
        numbers = ', '.join(map(str, sorted({number for name in others for one in known[name].references for number in one.threads})))
        of = several(numbers, 'rank' if check.plumbline.ranks else 'thread') if numbers else 'a number of ranks that they do not tell (accept anew)'
        return f'they are of {of}, and {team} ran'
    over_nodes = bool(check.plumbline.ranks) and getattr(check, 'nodes', 1) != 1
    return _fitting(check, known, {name: one.of_team(team, over_nodes) for name, one in known.items()}, why)


def _of_the_same_sets(check, known, found):
    '''The same, without references of caches that are of another working set: what is ours of a virtual machine's caches may have become less.'''
    described = ((one.metric.metric, one.metric.subject, one.metric.record) for one, *_ in found.values())
    now = dict(zip(found, records.sets_in_caches(described, getattr(check, 'level', None))))

    def why(others):
        sets = sorted({f'of {size(known[name].references[0].working_set)}, and {size(now[name])} was swept through' for name in others})
        return f"they are of another working set: {'; '.join(sets)}"
    return _fitting(check, known, {name: one.of_set(now.get(name)) for name, one in known.items()}, why)


def _fitting(check, known, fitting, why):
    '''What is known of the metrics, as far as it fits (None: nothing of it); ``why``: function of the names of those that do not.'''
    others = [name for name, one in fitting.items() if one is None]
    return _without(check, {name: one or known[name] for name, one in fitting.items()}, others, why(others))


def _without(check, known, others, why):
    '''What is known of the metrics, of some only what holds on any machine; that is said.'''
    if others:
        check.plumbline.skip(result.Skipped('against its references', why, referenced=sorted(others)))
    return {name: of_it for name, one in known.items() if (of_it := one.beneath if name in others else one)}
