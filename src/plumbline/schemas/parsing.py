'''YAML as data: what two readers could understand differently is refused.'''

import contextlib
import functools
import re
from importlib import resources
from pathlib import Path
from typing import ClassVar

import yaml

try:    # the one in C is many times as fast; not every PyYAML has it
    from yaml import CSafeLoader as SafeLoader
except ImportError:
    from yaml import SafeLoader

from plumbline.errors import PlumblineError

#: Lists and mappings within each other: no file of ours comes near, and parsers call themselves for each, that in C until Python ends.
_DEEPEST = 50


class StrictLoader(SafeLoader):
    '''YAML 1.1, as ReFrame reads it, without its traps.

    PyYAML keeps the last of two equal keys.  A number as a key never equals a test's attribute,
    which is text, and no pattern is tried for it: such a reference is silently never used.
    '''

    def construct_document(self, node):
        self._refuse_recursion(node, ())
        return super().construct_document(node)

    def _refuse_recursion(self, node, within):
        if node in within:
            raise yaml.constructor.ConstructorError(problem='an alias (*name) stands within what it names; write out what is meant',
                                                    problem_mark=node.start_mark)
        for child in () if isinstance(node, yaml.ScalarNode) else node.value:
            for each in child if isinstance(child, tuple) else (child,):
                self._refuse_recursion(each, (*within, node))

    def construct_mapping(self, node, deep=False):
        seen = set()
        for key_node, _ in node.value:
            if key_node.tag.endswith(':merge'):
                continue
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    problem=f"key {key!r} is not text; quote it: '{key_node.value}'",
                    problem_mark=key_node.start_mark)
            if key in seen:
                raise yaml.constructor.ConstructorError(problem=f'key {key!r} stands here twice; remove one', problem_mark=key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


class _CoreLoader(StrictLoader):
    '''The core schema of YAML 1.2 (its section 10.3.2): ``on``, ``1:30`` and dates are text, and ``010`` is ten.'''

    yaml_implicit_resolvers: ClassVar[dict] = {}

    def construct_integer(self, node):
        return int(node.value, {'0o': 8, '0x': 16}.get(node.value[:2], 10))


for _tag, _pattern, _first in (
    ('null', r'~|null|Null|NULL|', ['~', 'n', 'N', '']),
    ('bool', r'true|True|TRUE|false|False|FALSE', list('tTfF')),
    ('int', r'[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+', list('-+0123456789')),
    ('float', r'[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)', list('-+0123456789.')),
    ('merge', r'<<', ['<']),
):
    _CoreLoader.add_implicit_resolver(f'tag:yaml.org,2002:{_tag}', re.compile(f'^(?:{_pattern})$'), _first)
_CoreLoader.add_constructor('tag:yaml.org,2002:int', _CoreLoader.construct_integer)


def parse(text):
    '''What a text in YAML 1.2 holds.

    :raises yaml.YAMLError: if it is none.
    '''
    return yaml.load(text, Loader=_CoreLoader)


@functools.cache
def shipped(name):
    '''What ``data/NAME.yaml`` of this package holds.'''
    return parse(resources.files('plumbline').joinpath(f'data/{name}.yaml').read_text(encoding='utf-8'))


def text_of_yaml(path):
    '''The text of a YAML file, which any parser can take.

    :raises OSError, UnicodeDecodeError: if it cannot be read.
    :raises PlumblineError: if lists and mappings lie too deep within each other.
    '''
    text, depth = Path(path).read_text(encoding='utf-8'), 0
    with contextlib.suppress(yaml.YAMLError):       # whoever reads it says what is wrong
        for event in yaml.parse(text, Loader=SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise PlumblineError(f'{path}, line {event.start_mark.line + 1}: more than {_DEEPEST} lists and mappings within each other, which '
                                     'nothing here means; fix the YAML')
    return text
