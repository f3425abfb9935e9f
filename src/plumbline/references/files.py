'''Reading reference files, and laying a site's references over the portable ones.

The files are in ReFrame's form of external references (4.10): class name, ``$index``, one level of
keys per index entry, then metric -> [reference, lower, upper, unit].  ReFrame looks a key up
exactly first and then as the first pattern that matches, and never goes back: an exact entry hides
all patterns beside it.  That is why merging copies, and why it is done here and not by ReFrame.
'''

import functools
import os
import re
import sys
from pathlib import Path

import yaml

from plumbline import schemas
from plumbline.errors import PlumblineError
from plumbline.model import processor, registry
from plumbline.model.baselines import PORTABLE
from plumbline.schemas import parsing
from plumbline.settings import HOME, ROOT

_SPECIAL = ('$provenance', '$accepted', '$origin', '$recorded', '$known_issues', '$elsewhere', '$beneath')
_UNITS = sorted({entry.unit for entry in registry.METRICS.values()})
_PATTERN_CHARACTERS = re.compile(r'[*?\[\](){}|^$\\]')


def directory():
    '''The folder of a site's references: ``PLUMBLINE_REFERENCES``, else that of :data:`settings.HOME`.

    :raises PlumblineError: if it does not exist; without it every metric would lose its reference.
    '''
    path = Path(os.environ.get('PLUMBLINE_REFERENCES') or HOME / 'config/references')
    if not path.is_dir() and (HOME == ROOT or 'PLUMBLINE_REFERENCES' in os.environ):
        raise PlumblineError(f'{path}: no folder of references; set PLUMBLINE_REFERENCES to it')
    return path


def portable(folder):
    '''The file of what holds on any machine: that of the folder, or the one that Plumbline brings to a site's own.'''
    own = Path(folder) / PORTABLE
    return ROOT / 'config/references' / PORTABLE if Path(folder) == HOME / 'config/references' and not own.exists() else own


def _wrong_leaf(leaf):
    '''What the schema cannot say about one reference.'''
    ref, lower, upper, _ = leaf
    if not all(abs(x) <= sys.float_info.max for x in (ref, lower, upper) if x is not None):      # of a whole number, too
        return 'not a finite number; measure it again'
    if upper is None and (lower is None or (lower == -1 and ref > 0)):
        unbounded = 'no bound is set' if lower is None else 'the lower threshold -1 is a lower bound of 0, and no upper one is set'
        return f'{unbounded}, so any value would pass; give one, e.g. -0.1'
    if ref > 0 and lower is not None and lower < -1:
        return f'the lower threshold {lower} is below -1; it is a fraction of the reference'
    return None


def _wrong_node(node, depth, keys):
    '''Walk an entry of a test down to its references; the first complaint or :obj:`None`.'''
    for key, child in node.items():
        if key == '$index':
            continue
        where = '/'.join([*keys, key])
        try:
            re.compile(key if depth else '')
        except re.error as error:
            return f'field {where}: ReFrame takes keys for patterns, and this is none: {error}'
        if isinstance(child, list) != (depth == 0):
            return (f'field {where}: expected a '
                    f"{'reference here' if depth == 0 else 'mapping for the next key of $index'}; "
                    '$index names as many keys as there are levels above the metrics')
        wrong = (_wrong_leaf(child) if depth == 0 else
                 _wrong_node(child, depth - 1, [*keys, key]))
        if wrong:
            return f'field {where}: {wrong}' if depth == 0 else wrong
    return None


def tests(references):
    '''The entries of the tests: class name -> entry, without ``$accepted``, ``$provenance`` and ``$origin``.'''
    return {name: entry for name, entry in references.items() if name not in _SPECIAL}


def leaves(references):
    '''Each reference as ((test, key path ..., name), leaf).'''
    for test, entry in tests(references).items():
        yield from _leaves(_below(entry), (test,))


def _leaves(node, keys):
    for key, child in node.items():
        yield from _leaves(child, (*keys, key)) if isinstance(child, dict) else [((*keys, key), child)]


def _below(entry):
    return {key: child for key, child in entry.items() if key != '$index'}


def _mapped(change, node, *beside):
    '''A tree of references with each of them changed, without those that become None, and without the mappings that are then empty.

    :arg change: function (reference, what each of the trees ``beside`` has in its place, or None).
    '''
    if not isinstance(node, dict):
        return change(node, *beside)
    found = {key: child if key == '$index' else _mapped(change, child, *((tree or {}).get(key) for tree in beside)) for key, child in node.items()}
    return {key: child for key, child in found.items() if child}


def _wrong_origin(node, accepted, keys=('$provenance',)):
    '''Walk the provenance; the first that does not fit what was accepted, or :obj:`None`.'''
    if not isinstance(node.get('accepted'), str):       # a level of keys
        return next(filter(None, (_wrong_origin(child, accepted, (*keys, key)) for key, child in node.items())), None)
    where, when = '/'.join(keys), node['accepted']
    if when not in accepted:
        return f"field {where}: accepted '{when}' is not in $accepted; accept the references again"
    count = len(accepted[when]['sessions'])
    if any(len(origin['measured']) != count for origin in (node, *node.get('states', ()))):
        return f"field {where}: measured has not one value for each of the {count} sessions of '{when}'; accept the references again"
    return None


@functools.lru_cache(maxsize=64)
def _load(path, _modified, _size):
    try:
        references = yaml.load(parsing.text_of_yaml(path), Loader=parsing.StrictLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, 'problem_mark', None)
        line = f', line {mark.line + 1}' if mark else ''
        problem = getattr(error, 'problem', None) or str(error).splitlines()[0]
        raise PlumblineError(f'{path}{line}: {problem}; fix the YAML') from None
    except UnicodeDecodeError as error:
        raise PlumblineError(f'{path}: not UTF-8 text ({error}); save it as UTF-8') from None
    except ValueError as error:       # no date of any year, a number of 5000 digits
        raise PlumblineError(f'{path}: {error}; fix the YAML') from None
    references, wrong = _checked({} if references is None else references)
    if wrong:
        raise PlumblineError(f'{path}: {wrong}')
    return references


def _checked(references):
    '''The content of a file with its known issues apart, and what is wrong with it, or :obj:`None`.'''
    wrong = schemas.complaint('references', references)
    if not wrong:
        references = _with_known_issues(references)
    for name, entry in () if wrong else tests(references).items():
        wrong = wrong or _wrong_node(entry, len(entry['$index']), [name])
    return references, wrong or _wrong_unit(references) or _wrong_origin(references.get('$provenance', {}), references.get('$accepted', {}))


def origin_of(references, place):
    '''Where a reference, (test, key path ..., name), comes from; empty of one that was written by hand.'''
    return lookup(references.get('$provenance', {}), place[0], place[1:-1]).get(place[-1], {})


def _wrong_unit(references):
    '''Tests of other suites have units of their own.'''
    return next((f"field {'/'.join(place)}: the unit is {leaf[3]!r}; the units are {', '.join(_UNITS)}" for place, leaf in leaves(references)
                 if leaf[3] not in _UNITS and not registry.is_of_other_suite(origin_of(references, place).get('metric'))), None)


def _with_known_issues(references):
    '''ReFrame's ``['$xfail', ticket, [reference, lower, upper, unit]]`` as the reference alone, and the tickets, in the form of the
    file, below ``$known_issues``.'''
    plain = {name: _mapped(lambda leaf: leaf[2] if leaf[0] == '$xfail' else leaf, entry) for name, entry in tests(references).items()}
    found = {name: _mapped(lambda leaf: leaf[1] if leaf[0] == '$xfail' else None, _below(entry)) for name, entry in tests(references).items()}
    tickets = {**references.get('$known_issues', {}), **{name: its for name, its in found.items() if its}}
    return {**references, **plain, **({'$known_issues': tickets} if tickets else {})}


def load(path):
    '''Read and check one file of references.

    :returns: its content as a dictionary, to be read only: it is kept for the next call.  An empty
        file gives an empty dictionary.
    :raises PlumblineError: naming the file, the line or the path inside it, what is wrong and how
        to fix it.
    '''
    try:
        state = os.stat(path)
        return _load(str(path), state.st_mtime_ns, state.st_size)
    except OSError as error:
        raise PlumblineError(f'{path}: cannot read the references: {error.strerror}; '
                             'create or permit the file') from None


def find(node, key):
    '''The child of ``node`` that ReFrame takes for ``key``: exact, else the first pattern.'''
    if key in node:
        return node[key]
    return next((child for pattern, child in node.items() if re.match(f'^{pattern}$', key)), None)


def portable_beside(path):
    '''The content of ``portable.yaml`` beside a file of references, else of that in force; empty if there is none.'''
    path = Path(path).with_name(PORTABLE)
    path = path if path.exists() else portable(directory())
    return load(path) if path.exists() else {}


def lookup(references, test, keys, index=None):
    '''The metrics of a test, as ReFrame looks them up.

    :arg keys: one text per entry of the test's ``$index``.
    :arg index: that ``$index``; an entry with another one does not count.
    :returns: metric -> [reference, lower, upper, unit]; empty if there is no entry.
    '''
    node = _below(references.get(test, {}))
    if index and node and references[test]['$index'] != index:
        return {}
    for key in keys:
        node = find(node, key)
        if node is None:
            return {}
    return node


def _merge_node(portable, site, depth):
    '''Merge two subtrees of ``depth`` levels of keys; the site's metrics win.'''
    if depth == 0:
        return {**portable, **site}
    keys = [*site, *(key for key in portable if key not in site)]
    return {key: _merge_node(find(portable, key) or {}, site.get(key, {}), depth - 1)
            for key in keys}


def refuse_patterns(name, entry):
    '''Of a test in a site's file; :raises PlumblineError: where a key is one.'''
    for (_, *keys, _), _ in leaves({name: entry}):
        if pattern := next(filter(_PATTERN_CHARACTERS.search, keys), None):
            raise PlumblineError(f'references of {name}: {pattern!r} is a pattern, but a site records what it measured; name it exactly, patterns '
                                 'belong in portable.yaml; where it was accepted, take it out and accept anew')


def merge(portable, *sites):
    '''Lay a site's references over the portable ones, and those of a node over both.

    In the result ReFrame finds, for any test, partition and environment, the site's metrics where
    the site has them and the portable ones for the rest.

    :arg portable: content of ``portable.yaml``; its keys may be patterns.
    :arg sites: contents of the site's files; their keys are exact.
    :returns: the same form, without ``$provenance``.
    :raises PlumblineError: if the two disagree on a test's ``$index``, or if a key of the site is
        a pattern.
    '''
    if len(sites) > 1:
        return functools.reduce(merge, sites, portable)
    merged, (site,) = {}, sites
    for name in sorted({*tests(portable), *tests(site)}):
        ours, theirs = portable.get(name, {}), site.get(name, {})
        index = theirs.get('$index') or ours.get('$index')
        if ours and ours['$index'] != index:
            raise PlumblineError(f"references of {name}: $index is {ours['$index']} in "
                                 f"portable.yaml and {index} in the site's file; make them equal")
        refuse_patterns(name, theirs)
        merged[name] = {'$index': index, **_merge_node(_below(ours), _below(theirs), len(index))}
    return merged


def of_processor(site, test, name):
    '''The references of a test without those that were recorded on other processors only: hardware changes, names of systems stay.

    Where the sessions ran on several, each reference says its own; what was written by hand holds on all.

    :arg name: of the processor (:func:`processor.name`), or None where it is not known: then all are kept.
    :returns: (content of the file, sorted names of the other processors).
    '''
    others: set[str] = set()

    def kept(leaf, origin):
        if 'accepted' not in (origin or {}):
            return leaf
        names = [origin['processor']] if 'processor' in origin else site['$accepted'][origin['accepted']]['machine']['processors']
        if not names or any(processor.same(name, one) for one in names):
            return leaf
        others.update(names)
        return None

    entry = _mapped(kept, site.get(test, {}), site.get('$provenance', {}).get(test, {}))
    rest = {key: value for key, value in site.items() if key != test}
    return {**rest, **({test: entry} if set(entry) - {'$index'} else {})}, sorted(others)


def recorded(site, test):
    '''What the provenance of a test's references knows of the machine's states and of the sessions that they are from.

    :returns: the keys of ``$index``, then metric -> list of dictionaries, that of the usual state first: ``reference``; ``state``,
        where there was more than one; ``simd_width`` of the code, ``threads``, ``working_set`` and ``given``, where they are known; ``expected``
        (``deviation``, ``freedom``, ``spread``, where processes told it, and ``measured``: session -> value), where the reference is a prediction
        from several sessions.
    '''
    sessions = {when: entry['sessions'] for when, entry in site.get('$accepted', {}).items()}

    def known(leaf, origin):
        if 'accepted' not in (origin or {}):
            return None
        names = sessions[origin['accepted']]
        usual = {key: origin[key] for key in ('threads', 'working_set') if key in origin}      # until 29 November 2026 of the usual state only
        return [_with_expectation(one, names) for one in ({**origin, 'reference': leaf}, *({**usual, **one} for one in origin.get('states', ())))]

    return _mapped(known, _below(site.get(test, {})), site.get('$provenance', {}).get(test))


def _with_expectation(origin, sessions):
    found = {key: origin[key] for key in ('state', 'reference', 'simd_width', 'threads', 'working_set', 'given') if origin.get(key)}
    return found | {'expected': {**{key: origin[key] for key in ('deviation', 'freedom', 'spread') if key in origin}, 'measured': {
        session: value for session, value in zip(sessions, origin['measured']) if value is not None}}}


def overlaid(known, own, entry):
    '''What is known of references (a tree of them) with that of a further file laid over it.

    :arg known, own: trees, or None.
    :arg entry: the further file's references, a tree: of each of them its own counts, though it knows nothing.
    '''
    if not isinstance(entry, dict):
        return own
    known, own = known or {}, own or {}
    found = {key: overlaid(known.get(key), own.get(key), entry[key]) if key in entry else known.get(key) for key in (*known, *own)}
    return {key: child for key, child in found.items() if child}


def origins(files, names):
    '''Where each metric of :func:`merge` comes from.

    :arg names: what to call the files.
    :returns: the form of :func:`merge` with the name of the file in place of each reference.
    '''
    return merge(*({name: _mapped(lambda _, label=label: label, entry) for name, entry in tests(file).items()} for file, label in zip(files, names)))
