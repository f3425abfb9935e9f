'''The parameters of a test: what tells its cases apart.  With a dot before the name those of ReFrame's command line: ``.nid`` and ``.part``
(``--distribute``), ``.repeat_no`` (``--repeat``), others are variables of the test (``-P``): with another value it is another test.

ReFrame's run report and its logs have them in the display name only (``Triad %level=L1 %.nid=n1``): of a case's other attributes nothing says
which are parameters, and those of the command line are not among them.  So the name is taken apart here alone: where a row of the archive is made,
which others ask (:func:`of_row`), and for people (:func:`as_words`).  (``$index`` of a file of references holds names of parameters: ReFrame itself
looks their values up.)
'''

import functools
import json
import re
from collections.abc import Mapping
from typing import Any

from plumbline.model.safe_text import shown

#: Where a parameter begins in a display name; values may hold blanks.
_NEXT = re.compile(r' %(?=[^ =%]+=)')

#: Those of the command line that tell runs of one test apart.
OF_RUNS = ('.nid', '.part', '.repeat_no')


def of_display_name(display_name: str) -> tuple[str, dict[str, str]]:
    '''(the name that outlives a session, without what tells runs of the test apart; the values of all parameters as ReFrame writes them).'''
    check, *pairs = _NEXT.split(display_name)
    return ' %'.join([check, *(pair for pair in pairs if pair.split('=')[0] not in OF_RUNS)]), dict(pair.split('=', 1) for pair in pairs)


def as_words(display_name: str) -> str:
    '''A test with its parameters as people read it: ``gather_memory one uniform``.'''
    check, *pairs = _NEXT.split(shown(display_name))
    return ' '.join([check, *(pair.split('=', 1)[1] for pair in pairs)])


def varied(its: Mapping[str, str]) -> list[str]:
    '''The variables of the test that the command line gave values to (``-P``): what is known of the test is not known of these.'''
    return [name[1:] for name in its if name[0] == '.' and name not in OF_RUNS]


def options_of_varied(display_name: str) -> list[str]:
    '''ReFrame's options that select a test which the command line has repeated, distributed or varied (``-P``): it looks for the test before it does
    so, not by the hash after it.  An empty list of any other test.'''
    check, *pairs = _NEXT.split(display_name)
    own = '%'.join([check, *(pair for pair in pairs if pair[0] != '.')]).replace(' ', '')
    _, its = of_display_name(display_name)
    options = [option for name in varied(its) for option in ('-P', f"{check}.{name}={its['.' + name]}")]
    return ['-n', f'^{re.escape(own)}$', *options] if any(name[0] == '.' for name in its) else []


def of_row(row: Mapping[str, Any]) -> Mapping[str, str]:
    '''Name -> value, of a row of the archive.'''
    return _read(row['parameters'] or '{}')


@functools.lru_cache(4096)      # few texts in many rows, and nobody changes what is read
def _read(text: str) -> Mapping[str, str]:
    return json.loads(text)


def added(row: Mapping[str, Any]) -> list[str]:
    '''What tells runs of a test apart, and no other column: values, and the number of the repetition.'''
    values = [value for name, value in of_row(row).items() if name in ('.nid', '.repeat_no') and (name, value) != ('.nid', row['hostname'])]
    return values + ([] if row['repetition'] is None else [str(row['repetition'])])
