'''What ReFrame's command line says of running tests again: retries of what failed come first, then repetitions of all.'''

import re
import sys

from plumbline.settings import on_command_line
from plumbline.store.archive_rows import REPEATED


def are_followed():
    '''Whether repetitions follow.'''
    return bool(REPEATED.search(' '.join(sys.argv)))


def most():
    '''How often what failed is run again at most; our modes do so once.'''
    given = re.findall(r'\s--max-r\S*?[= ](\d+)', ' '.join(sys.argv))
    return int(given[-1]) if given else int(bool(on_command_line('--mode')))
