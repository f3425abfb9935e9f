'''The references in force for a test, and the command that checks them.

``config/references/portable.yaml`` holds what any machine must reach (fractions of its own
limits), ``config/references/SYSTEM.yaml`` what one site recorded.
'''

import re
from dataclasses import dataclass, replace
from pathlib import Path

import yaml

try:    # the one in C is many times as fast; not every PyYAML has it
    from yaml import CSafeDumper as SafeDumper
except ImportError:
    from yaml import SafeDumper

from plumbline.errors import PlumblineError
from plumbline.model import parameters, registry
from plumbline.model.baselines import PORTABLE
from plumbline.references.files import directory, load, lookup, merge, of_processor, origins, overlaid, portable, recorded, tests
from plumbline.references.peaks import check

__all__ = ['applying', 'check', 'directory', 'elsewhere', 'file_of', 'load', 'lookup', 'merge', 'narrowed', 'of_keys',
           'of_site', 'origins', 'write_merged']

MERGED_NAME = 'plumbline-references.yaml'

#: Names of nodes that may have references of their own.
NODE = re.compile(r'[\w.-]+')


@dataclass(frozen=True)
class Reference:
    '''A reference.

    :attr leaf: (reference, lower, upper).
    :attr state: of the machine, where it was recorded in one of several; else None.
    :attr expected: ``deviation``, ``freedom``, ``measured`` (:class:`plumbline.model.prediction.Prediction`; session -> value),
        where it is a prediction from several sessions; else None.
    :attr known_issue: the ticket of what keeps it from being met, or None.
    :attr simd_width: of the code that it was measured with, or None where that is not known.
    :attr threads: numbers of those, or of ranks, that it was measured with; empty where it is not of all, or that is not known.
    :attr working_set: of a cache, bytes; None of anything else, or where that is not known.
    :attr given: variable -> text: what the command line, or a mode, gave of what was measured; None: nothing.
    '''
    leaf: tuple
    state: dict | None = None
    expected: dict | None = None
    known_issue: str | None = None
    simd_width: str | None = None
    threads: list[int] | tuple = ()
    working_set: int | None = None
    given: dict | None = None


@dataclass(frozen=True)
class Known:
    '''What is known of a metric.

    :attr file: its name.
    :attr references: a :class:`Reference` for each state, that of the usual one first.
    :attr beneath: :class:`Known` of any machine, which counts where none of the file's own applies; None if there is none.
    '''
    file: str
    references: list
    beneath: 'Known | None' = None

    def of_set(self, size):
        '''The same without references of another working set of a cache than ``size``, bytes (None: not known); None where there are no others.'''
        return self._with(lambda one: size is None or one.working_set in (None, size))

    def of_given(self, given):
        '''The same without recorded references of what was measured with other variables given (:attr:`Reference.given`); None where there are no
        others.  What was written by hand holds.'''
        return self._with(lambda one: not one.expected or (one.given or {}) == given)

    def of_team(self, number, told=False):
        '''The same without references of another number of threads, or ranks (0: not known); with ``told`` without recorded ones that do not say.'''
        return self._with(lambda one: not number or number in one.threads or not (one.threads or (told and one.expected)))

    def _with(self, applies):
        kept = list(filter(applies, self.references))
        return replace(self, references=kept) if kept else None


class _Dumper(SafeDumper):
    '''Evidence is read by people: no anchors and aliases for equal lists.'''

    def ignore_aliases(self, data):
        return True


def file_of(system, node=None):
    '''The name of the file of a system's references, or of those of one of its nodes, which go before them.'''
    if node and not NODE.fullmatch(node):
        raise PlumblineError(f'node {node!r}: this is no name of a node')
    return f'{system}@{node}.yaml' if node else f'{system}.yaml'


def write_merged(stage_dir, system, test=None, folder=None, processor=None, node=None):
    '''Write the references in force next to the evidence of a test.

    ``self.reference = {'$ref': write_merged(self.stagedir, self.current_system.name)}``

    :arg system: ReFrame's name of the system.  A file that does not exist counts as empty: its
        metrics have NO REFERENCE.
    :arg test: class name; write its entry only.  By default all entries.
    :arg folder: the folder of the references; :func:`directory` by default.
    :arg processor: name of the one that was measured: references recorded on others do not apply, and these stand as ``$elsewhere``.
    :arg node: name of the node that was measured, if it was one.
    :returns: the absolute path of the file, a text.
    :raises PlumblineError: if a file of references is wrong, or if the file cannot be written.
    '''
    folder = Path(folder or directory())
    names, sites, elsewhere = _of_system(folder, system, test, processor, node)
    shipped = portable(folder)
    names, files = [PORTABLE, *names], [load(shipped) if shipped.exists() else {}, *sites]
    if test is not None:
        files = [{name: entry for name, entry in tests(file).items() if name == test} for file in files]
    known: dict = {}
    tickets: dict = {}
    for site in sites:      # what the node's file has of a metric replaces all that the system's has of it
        known = overlaid(known, recorded(site, test), site.get(test, {}))
        tickets = overlaid(tickets, site.get('$known_issues', {}).get(test), site.get(test, {}))
    beneath = {'$beneath': tests(files[0])} if known and tests(files[0]) else {}
    return _write(Path(stage_dir).resolve() / MERGED_NAME,
                  {**merge(*files), '$origin': origins(files, names), **({'$recorded': known} if known else {}), **beneath,
                   **({'$known_issues': {test: tickets}} if tickets else {}),
                   **({'$elsewhere': sorted(elsewhere)} if elsewhere else {})})


def _of_system(folder, system, test, processor, node):
    '''(names, contents) of the files of a system and of its node, without what was recorded on other processors, and these.'''
    names = [file_of(system)] + ([file_of(system, node)] if NODE.fullmatch(node or '') else [])
    found = [of_processor(load(folder / name) if (folder / name).exists() else {}, test, processor) for name in names]
    return names, [kept for kept, _ in found], set().union(*(others for _, others in found))


def elsewhere(path):
    '''The processors, other than the one that was measured, of which the system has references: names.'''
    return load(path).get('$elsewhere', [])


def of_site(test, processor=None, node=None):
    '''The names of the metrics that the system's own files have references of, for a ReFrame test after setup: a list.

    :arg processor, node: as of :func:`write_merged`.
    '''
    name = type(test).__name__
    _, sites, _ = _of_system(Path(directory()), test.current_system.name, name, processor, node)
    return sorted({metric for site in sites for metric in lookup(site, name, _keys(site, test))})


def narrowed(path, test, leaves):
    '''Leave in the file next to the evidence what is judged by, as ReFrame finds it: it knows no states, and of a number no key.

    :arg path: what :func:`write_merged` returned.
    :arg leaves: metric -> (reference, lower, upper, unit), or None for a metric without a reference in its state.
    '''
    node = {metric: [*leaf[:3], registry.find(metric.partition('.')[0]).unit] for metric, leaf in leaves.items() if leaf is not None}
    entry = {type(test).__name__: {'$index': ['$partition'], test.current_partition.fullname: node}} if node else {}
    kept = {key: value for key, value in load(path).items() if key.startswith('$')}
    return _write(Path(path), {**entry, **kept})


def _write(path, content):
    try:
        with open(path, 'w', encoding='utf-8') as file:
            yaml.dump(content, file, Dumper=_Dumper, sort_keys=False, default_flow_style=None, allow_unicode=True)
    except OSError as error:
        raise PlumblineError(f'{path}: cannot write the references in force: {error.strerror}; '
                             'make room or permit writing there') from None
    return str(path)


def _attribute(test, key):
    '''The value of one entry of ``$index`` for a ReFrame test; of a parameter, or a number, the text that the archive has.'''
    special = {'$system': lambda: test.current_system.name,
               '$partition': lambda: test.current_partition.fullname,
               '$environ': lambda: test.current_environ.name}
    if key in special:
        return special[key]()
    if key.startswith('$processor.'):
        return getattr(test.current_partition.processor, key.partition('.')[2])
    if key.startswith('$'):
        raise AttributeError(key)
    its = parameters.of_display_name(test.display_name)[1]
    value = its[key] if key in its else getattr(test, key)
    return str(value) if isinstance(value, int) else value


def _keys(references, test):
    '''The keys of a test, one text per entry of ``$index``.'''
    name, keys = type(test).__name__, []
    for key in references.get(name, {}).get('$index', ()):
        try:
            keys.append(_attribute(test, key))
        except AttributeError:
            raise PlumblineError(f'references of {name}: $index names {key!r}, which the test has '
                                 'not; give the test this attribute or fix $index') from None
        if not isinstance(keys[-1], str):
            raise PlumblineError(f'references of {name}: {key} is {keys[-1]!r} and not text, so no '
                                 'key can match it; make the attribute a text')
    return keys


def applying(path, test):
    '''The references that apply to a test, as ReFrame looks them up, and where they come from.

    :arg path: what :func:`write_merged` returned; :arg test: the ReFrame test, after setup.
    :returns: metric -> :class:`Known`; empty if there are none.
    :raises PlumblineError: if ``$index`` names what the test has not, or what is not text: ReFrame
        only warns, and the metric would lose its reference.
    '''
    references, name = load(path), type(test).__name__
    return of_keys(references, name, _keys(references, test))


def of_keys(references, name, keys):
    '''The same by the class name of a test and its keys, one text per entry of ``$index``.

    :arg references: content of what :func:`write_merged` wrote.
    '''
    found = lookup(references, name, keys)
    files = lookup(references['$origin'], name, keys)
    recorded_of = lookup({name: references.get('$recorded') or {}}, name, keys)
    tickets = lookup(references.get('$known_issues') or {}, name, keys)
    beneath = {metric: Known(PORTABLE, [Reference(tuple(leaf[:3]))])
               for metric, leaf in lookup(references.get('$beneath') or {}, name, keys).items() if files.get(metric) != PORTABLE}
    return {metric: Known(files[metric], [
        Reference(tuple(one['reference'][:3]), one.get('state'), one.get('expected'), tickets.get(metric), one.get('simd_width'),
                  one.get('threads', ()), one.get('working_set'), one.get('given'))
        for one in recorded_of.get(metric) or [{'reference': leaf}]], beneath.get(metric)) for metric, leaf in found.items()}
