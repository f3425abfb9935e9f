'''A session as strangers may see it: without kernel, microcode and mitigations, without paths, command lines and users.'''

import json
import re

import polars as pl

#: Of the machine record: what an attacker would like to know.
WITHHELD = ('kernel', 'microcode', 'mitigations')

#: An absolute path of more than one part, or one below a home; its last part says what it is.
_PATH = re.compile(r"(?:(?<![\w.~/*])|(?<=-[A-Z]))~?/(?:[^\s/:;,'\"<>|()]+/)+([^\s/:;,'\"<>|()]*)")

#: The check whose reasons are what a node must be and is: kernel and microcode are among it.
_FACTS = 'expectations'

#: Of ReFrame's account of the session what the page shows of it.
_SESSION = ('version', 'time_elapsed')


def public(rows):
    """The archive's rows of a session (polars), with what is nobody else's taken out."""
    changes = {**dict.fromkeys(('reason', 'fail_reason', 'reference_from'), without_paths), 'detail': _detail, 'session_info': _session}
    told = pl.lit('withheld: what the node has and must have')
    return rows.with_columns(
        pl.when(pl.col('check') != _FACTS).then(name).when(pl.col(name).is_not_null()).then(told).alias(name)
        for name in ('reason', 'fail_reason') if name in rows.columns
    ).with_columns(
        pl.col(name).map_elements(change, return_dtype=pl.String) for name, change in changes.items() if name in rows.columns
    )


def without_paths(text):
    '''A text with the last part alone of each path.'''
    return _PATH.sub(r'\1', text)


def _detail(text):
    detail = {key: value for key, value in json.loads(text).items() if key not in ('command', 'rerun', 'inputs')}
    facts = {one['note'] for one in detail.get('noted') or () if one['about'] == _FACTS}
    detail |= {'noted': [one for one in detail.get('noted') or () if one['note'] not in facts],
               'notes': [note for note in detail.get('notes') or () if note not in facts]}
    if detail.get('machine'):
        detail['machine'] = {key: value for key, value in detail['machine'].items() if key not in WITHHELD}
    if detail.get('software'):
        detail['software'].pop('variables', None)
    return json.dumps(_strings(detail))


def _session(text):
    info = json.loads(text)
    return json.dumps({key: info[key] for key in _SESSION if key in info} | {'cmdline': 'withheld'})


def _strings(value):
    '''The same value with :func:`without_paths` of every text in it.'''
    if isinstance(value, dict):
        return {key: _strings(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_strings(one) for one in value]
    return without_paths(value) if isinstance(value, str) else value
