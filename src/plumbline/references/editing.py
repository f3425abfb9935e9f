'''Editing a file of references so that its diff shows what changed and nothing else.

Comments, order and style of what stands there are kept (ruamel.yaml's round trip); new keys are put where they belong by name.
'''

import io
from pathlib import Path

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap, CommentedSeq
from ruamel.yaml.error import YAMLError
from yaml import ScalarNode
from yaml.resolver import Resolver

from plumbline import atomic
from plumbline.errors import PlumblineError
from plumbline.references.files import load

#: Says what a scalar without quotes is in YAML 1.1, which ReFrame and we read: on, no and 4:2 are no text.
_RESOLVER, _TEXT = Resolver(), Resolver.DEFAULT_SCALAR_TAG


def _yaml():
    yaml = YAML(typ='rt')
    yaml.width = 4096       # a wrapped line is several lines of a diff
    yaml.preserve_quotes = True
    yaml.representer.add_representer(str, _text)
    yaml.representer.add_representer(type(None), lambda dumper, _: dumper.represent_scalar('tag:yaml.org,2002:null', 'null'))
    yaml.representer.add_representer(float, lambda dumper, value: dumper.represent_scalar('tag:yaml.org,2002:float', _number(value)))
    return yaml


def _text(dumper, text):
    return dumper.represent_scalar(_TEXT, text, None if _RESOLVER.resolve(ScalarNode, text, (True, False)) == _TEXT else "'")


def _number(value):
    '''YAML 1.1, which ReFrame reads, takes 2e-05 for text.'''
    text = repr(value)
    return text.replace('e', '.0e') if 'e' in text and '.' not in text else text


def _order(key):
    '''``$index`` first, ``$accepted`` and ``$provenance`` last, the rest by name.'''
    return (key != '$index', key.startswith('$'), key)


def child_of(node, key):
    '''The mapping below ``key``; an empty one is put in order if there is none.'''
    if key not in node:
        put(node, key, CommentedMap())
    return node[key]


def put(node, key, value):
    '''Set ``key``; a new key stands before the first one that follows it in order.'''
    if key in node:
        node[key] = value
        return
    later = (place for place, other in enumerate(node) if _order(other) > _order(key))
    node.insert(next(later, len(node)), key, value)


def remove(node, keys):
    '''Take out what these keys lead to, and the mappings that are empty without it.'''
    key, *further = keys
    if further:
        remove(node[key], further)
    if not further or not set(node[key]) - {'$index'}:
        del node[key]


def flow(value):
    '''A list or a mapping that is written on one line.'''
    result = CommentedSeq(value) if isinstance(value, list) else CommentedMap(value)
    result.fa.set_flow_style()
    return result


def edit_file(path, edit):
    '''Change a file of references, or make it.

    The result is read back and checked before it takes the place of the file.

    :arg edit: function of the content, a mapping that it changes in place.
    :raises PlumblineError: if the file is malformed before or after, or cannot be written.
    '''
    path, yaml = Path(path), _yaml()
    if path.exists():
        load(path)
    try:
        content = (yaml.load(path.read_text(encoding='utf-8')) if path.exists() else None)
        content = CommentedMap() if content is None else content
        edit(content)
        text = io.StringIO()
        yaml.dump(content, text)
        atomic.write(path, text.getvalue(), check=load)
    except (OSError, YAMLError, ValueError, RecursionError) as error:
        reason = getattr(error, 'strerror', None) or str(error).splitlines()[0]
        raise PlumblineError(f'{path}: cannot write the references: {reason}; make room or permit writing there') from None
