'''Expectations in files: ``config/expectations/KIND.yaml``, valid by ``schemas/expectations.json``.'''

import math
import re
from pathlib import Path

from plumbline import schemas, settings
from plumbline.errors import PlumblineError

#: Where they are.
FOLDER = settings.HOME / 'config/expectations'

_KIND = re.compile(r'[\w-][\w.-]*')


def path_of(kind):
    '''The file of a kind of node.'''
    if not _KIND.fullmatch(kind):
        raise PlumblineError(f'{kind!r}: this is no name of a kind of node: letters, digits, ".", "_" and "-"')
    return FOLDER / f'{kind}.yaml'


def load(path):
    '''The content of a file.

    :raises PlumblineError: in one line, if it cannot be read or is not valid.
    '''
    content = schemas.read_yaml(path, 'expectations', 'record them on a good node: plumbline expectations record KIND')
    for name, wanted in content['expectations'].items():
        try:
            re.compile(wanted.get('matches', ''))
        except (re.error, OverflowError, RecursionError) as error:
            raise PlumblineError(f"{path}: {name}: matches {wanted['matches']!r} is no regular expression: {error}") from None
        low, high = wanted.get('from', -math.inf), wanted.get('to', math.inf)
        if not low <= high:     # .nan is neither
            raise PlumblineError(f'{path}: {name}: from {low} is more than to {high}')
    return content


def of_partition(system, partition):
    '''(The file of a partition's nodes, its content or None where there is none).

    :arg partition: ReFrame's; its extra ``expectations`` names the kind of its nodes, by default ``SYSTEM-PARTITION``.
    '''
    path = path_of(partition.extras.get('expectations', f'{system}-{partition.name}'))
    return path, load(path) if Path(path).exists() else None
