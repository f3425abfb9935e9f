'''JSON schemas of everything that passes between the parts, and the one way to apply them.

The ``description`` of a subschema is the advice that an error message ends with.
'''

import contextlib
import functools
import json
from pathlib import Path

import yaml
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from plumbline.errors import PlumblineError

_LONGEST_MESSAGE = 140      # jsonschema quotes the whole offending value

#: Lists and mappings within each other: no file of ours comes near, and parsers call themselves for each, that in C until Python ends.
_DEEPEST = 50


@functools.cache
def validator(name):
    '''Compile ``schemas/NAME.json`` once.

    :arg name: ``'record'``, ``'result'`` or ``'references'``.
    :returns: A ``jsonschema`` validator.
    '''
    import jsonschema  # as long to load as numpy, and most commands read nothing that needs it
    with open(Path(__file__).parent / f'{name}.json', encoding='utf-8') as file:
        schema = json.load(file)
    cls = jsonschema.validators.validator_for(schema)
    cls.check_schema(schema)
    return cls(schema)


def text_of_yaml(path):
    '''The text of a YAML file, which any parser can take.

    :raises OSError, UnicodeDecodeError: if it cannot be read.
    :raises PlumblineError: if lists and mappings lie too deep within each other.
    '''
    text, depth = Path(path).read_text(encoding='utf-8'), 0
    with contextlib.suppress(yaml.YAMLError):       # whoever reads it says what is wrong
        for event in yaml.parse(text, Loader=getattr(yaml, 'CSafeLoader', yaml.SafeLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEPEST:
                raise PlumblineError(f'{path}, line {event.start_mark.line + 1}: more than {_DEEPEST} lists and mappings within each other, which '
                                     'nothing here means; fix the YAML')
    return text


def read_yaml(path, name, advice=''):
    '''The content of a YAML file, valid by the schema ``name``.

    :arg advice: what the message says besides where there is no file.
    :raises PlumblineError: in one line, if it cannot be read or is not valid.
    '''
    try:
        content = YAML(typ='safe', pure=True).load(text_of_yaml(path))
    except OSError as error:
        raise PlumblineError(f'{path}: {error.strerror}{advice and "; "}{advice}') from None
    except (YAMLError, ValueError) as error:
        raise PlumblineError(f"{path}: not YAML: {' '.join(str(error).split())}") from None
    if wrong := complaint(name, content):
        raise PlumblineError(f'{path}: {wrong}')
    return content


def complaint(name, instance):
    '''What is wrong with ``instance`` by the schema ``name``.

    :returns: One line, ``'field a/b: message; advice'``, or :obj:`None` if nothing is wrong.
    '''
    error = next(validator(name).iter_errors(instance), None)
    if error is None:
        return None
    field = '/'.join(str(part) for part in error.absolute_path) or '(top)'
    message = ' '.join(error.message.split())
    if len(message) > _LONGEST_MESSAGE:
        message = f'{message[:60]} … {message[-60:]}'
    advice = error.schema.get('description') if isinstance(error.schema, dict) else None
    return f'field {field}: {message}' + (f'; {advice}' if advice else '')
