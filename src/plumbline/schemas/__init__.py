'''JSON schemas of everything that passes between the parts, and the one way to apply them.

The ``description`` of a subschema is the advice that an error message ends with.
'''

import functools
import json
from pathlib import Path

import yaml

from plumbline.errors import PlumblineError
from plumbline.schemas.parsing import parse, text_of_yaml

_LONGEST_MESSAGE = 140      # jsonschema quotes the whole offending value


@functools.cache
def validator(name):
    '''Compile ``schemas/NAME.json`` once; that they are schemas is for the tests to check.

    :arg name: ``'record'``, ``'result'`` or ``'references'``.
    :returns: A ``jsonschema`` validator.
    '''
    import jsonschema  # as long to load as numpy, and most commands read nothing that needs it
    from referencing import Registry, Resource
    schema, record = _content(f'{name}.json'), 'record.json'
    registry = Registry().with_resource(record, Resource.from_contents(_content(record)))
    return jsonschema.validators.validator_for(schema)(schema, registry=registry)


def _content(name):
    with open(Path(__file__).parent / name, encoding='utf-8') as file:
        return json.load(file)


def read_yaml(path, name, advice=''):
    '''The content of a YAML file, valid by the schema ``name``.

    :arg advice: what the message says besides where there is no file.
    :raises PlumblineError: in one line, if it cannot be read or is not valid.
    '''
    try:
        content = parse(text_of_yaml(path))
    except OSError as error:
        raise PlumblineError(f'{path}: {error.strerror}{advice and "; "}{advice}') from None
    except (yaml.YAMLError, ValueError) as error:
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
