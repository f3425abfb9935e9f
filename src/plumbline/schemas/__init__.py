'''JSON schemas of everything that passes between the parts, and the one way to apply them.

The ``description`` of a subschema is the advice that an error message ends with.
'''

import functools
import json
from pathlib import Path

import jsonschema

_LONGEST_MESSAGE = 140      # jsonschema quotes the whole offending value


@functools.cache
def validator(name):
    '''Compile ``schemas/NAME.json`` once.

    :arg name: ``'record'``, ``'result'`` or ``'references'``.
    :returns: A ``jsonschema`` validator.
    '''
    with open(Path(__file__).parent / f'{name}.json', encoding='utf-8') as file:
        schema = json.load(file)
    cls = jsonschema.validators.validator_for(schema)
    cls.check_schema(schema)
    return cls(schema)


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
