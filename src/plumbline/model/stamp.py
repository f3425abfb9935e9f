'''What the names of sessions and sweeps begin with: when they began, in UTC (``20261121T093621Z``), so that they sort by time.'''

import datetime

_FORM = '%Y%m%dT%H%M%SZ'


def of(at: float) -> str:
    ''':arg at: seconds since 1970.'''
    return f'{datetime.datetime.fromtimestamp(at, datetime.timezone.utc):{_FORM}}'


def begun(name: str) -> datetime.datetime | None:
    '''When a session or a sweep began, by its name; None where that does not say, as of sessions of no archive.'''
    try:
        return datetime.datetime.strptime(f'{name:.16}+0000', f'{_FORM}%z')
    except ValueError:
        return None
