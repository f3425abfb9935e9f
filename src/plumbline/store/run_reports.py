'''ReFrame's run reports, as they are read: one, or those of a pipeline's jobs as one.'''

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from plumbline import schemas
from plumbline.errors import PlumblineError
from plumbline.model import quantity

#: Bytes of a run report.  A hundred checks on a node leave 3 MB; what is much more than those of a large machine is a mistake, or meant ill.
LARGEST_REPORT = 2**32

#: The year 3000, s since 1970.
LATEST = 32503680000

#: ReFrame's options by which nothing is measured, or nobody looks whether it is right.
_PROVES_NOTHING = re.compile(r'\s(--dr\S*|--skip-sa\S*)')

#: Half of a character beyond the first 65536, which by itself is none: no file can hold it.
_HALF = re.compile(r'\\u[dD][89a-fA-F]')


def _json(text: str) -> Any:
    '''As Python reads it; whole numbers of any length are floating-point numbers, and half characters are replaced.'''
    found = json.loads(text, parse_int=lambda digits: int(digits) if len(digits) < 19 else float(digits))
    return json.loads(json.dumps(found, ensure_ascii=False).encode('utf-8', 'replace')) if _HALF.search(text) else found


def read(path: str | Path, largest: int) -> dict:
    '''ReFrame's run report as a dictionary.'''
    again = 'run ReFrame again, or name its run report (general/report_file)'
    try:
        if (size := Path(path).stat().st_size) > largest:
            raise PlumblineError(f'{path}: a run report of {quantity.size(size)}, and at most {quantity.size(largest)} are read: look at what '
                                 'its tests printed')
        report = _json(Path(path).read_text(encoding='utf-8'))
    except OSError as error:
        raise PlumblineError(f'{path}: cannot read the run report: {error.strerror}; {again}') from None
    except (ValueError, RecursionError) as error:
        raise PlumblineError(f'{path}: the run report is not JSON ({error}); {again}') from None
    wrong = schemas.complaint('run_report', report)
    if not wrong and not 0 <= report['session_info']['time_start_unix'] <= LATEST:      # NaN passes the schema
        wrong = f"field session_info/time_start_unix: {report['session_info']['time_start_unix']} s since 1970 is no time of a session"
    if wrong:
        raise PlumblineError(f'{path}: not a run report of ReFrame 4: {wrong}; {again}')
    if not any(run['testcases'] for run in report['runs']):
        raise PlumblineError(f'{path}: no test ran; check the names and tags of the selection with reframe -l')
    if option := _PROVES_NOTHING.search(report['session_info'].get('cmdline') or ''):
        raise PlumblineError(f'{path}: by {option[1]} its session proves nothing: run ReFrame without it')
    _check_systems(path, report['runs'], 'run ReFrame once per system')
    return report


def _check_systems(what: object, runs: Iterable[dict], cure: str) -> None:
    systems = {case['system'] for run in runs for case in run['testcases']}
    if len(systems) != 1:
        raise PlumblineError(f'{what}: test cases of several systems {sorted(systems)}; {cure}')


def together(reports: Mapping[str | Path, dict]) -> dict:
    '''Several run reports, as the jobs of a pipeline (``reframe --ci-generate``) leave them, as one.

    :arg reports: dictionary path -> report.
    '''
    first = min(reports.values(), key=lambda report: report['session_info']['time_start_unix'])
    cases: dict[int, list[dict]] = {}
    places: dict[tuple, tuple[str | Path, dict]] = {}
    for path, report in reports.items():
        for number, run in enumerate(report['runs']):
            for case in run['testcases']:
                which = (number, case['system'], case['partition'], case['environ'], case['unique_name'])
                if which not in places:
                    cases.setdefault(number, []).append(case)
                    places[which] = path, case
                elif not case.get('fixture') and places[which][1].get('job_completion_time_unix') != case.get('job_completion_time_unix'):
                    # A restored session repeats what its dependencies were; without one each job has its own fixtures.
                    raise PlumblineError(f"{path}: {case['name']} was run, and in {places[which][0]} too: these are reports of two sessions")
    runs = [{'testcases': cases[number]} for number in sorted(cases)]
    _check_systems(', '.join(map(str, reports)), runs, 'give the reports of one')
    return {'session_info': first['session_info'], 'runs': runs}
