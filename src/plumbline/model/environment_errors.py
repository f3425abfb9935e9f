'''Environments whose compilers or modules do not work: the cause in one line, and their checks reported once.'''

import re
from collections.abc import Iterable, Sequence

from plumbline.model import verdict
from plumbline.model.quantity import several

#: What ReFrame says in its ``fail_reason`` of a module that it could not load.
_OPERATION = re.compile(r"could not execute module operation: command '.* (?P<module>\S+)' failed")

#: What tools say, the most telling first: of modules, and of builds.
_MODULE = re.compile(r'^(?:\S*: line \d+: (?P<none>module: command not found)'
                     r'|\s*(?:ERROR:|Lmod has detected the following error:)\s*(?P<said>.+))', re.MULTILINE)
_BUILD = [re.compile(pattern, re.MULTILINE) for pattern in (
    r'^plumbline: (.+)', r'^(.*(?:\b(?i:error): |multiple definition of |undefined reference to ).+)',
    r'^CMake Error.*\n+\s*(\S.*)', r'^(.*(?:not found|No such file).*)',
    r'(.*\S)(?![\s\S]*\S)')]


def sentence(environment: str, partition: str, cause: str) -> str:
    '''What makes a failure one of the environment, wherever it is met.'''
    return f'environment error: {environment} on {partition}: {cause}'


def cause(said: str, modules: Sequence[str] = ()) -> str:
    '''What a build that failed says for a reason.

    :arg said: what it wrote, standard error first.
    '''
    found = _MODULE.search(said) if modules else None
    if found:
        return f"{', '.join(modules)} does not load: {found['none'] or found['said']}"
    matches = (pattern.search(said) for pattern in _BUILD)
    return next((match[1].strip() for match in matches if match), 'its build wrote nothing')


def _cause(case: dict) -> str | None:
    '''Why a test case of a run report failed, where its environment is why.'''
    reason = case['fail_reason'] or ''
    if case['result'] == 'fail' and (ours := case.get('environment_error')):
        return ours
    if case['result'] == 'fail' and (operation := _OPERATION.search(reason)):
        told = _MODULE.search(reason)
        return f"{operation['module']} does not load: {told['said'] if told else 'the module system says nothing'}"
    return None


def key(case: dict) -> tuple[str, str, str]:
    '''What tells a test case from the others of its run, as ReFrame writes dependencies: name, partition, environment.'''
    return case['unique_name'], f"{case['system']}:{case['partition']}", case['environ']


def reported_once(cases: Iterable[dict]) -> dict[tuple, tuple[str | None, str, str]]:
    '''The reasons of those test cases of one run that an environment error is the cause of.

    :arg cases: entries of ``testcases`` of a run report.
    :returns: dictionary :func:`key` -> (verdict, reason, cause): the first case of each environment and cause is its FAIL, with the number
        of checks that were not run; the others have no verdict.
    '''
    keys = {key(case): case for case in cases}
    why = {known: because for known, case in keys.items() if (because := _cause(case))}
    more = why
    while more:         # a fixture may need the build, and a check the fixture
        waiting = {known: case for known, case in keys.items() if case['result'] == 'fail_deps' and known not in why}
        more = {known: why[needs[0]] for known, case in waiting.items()
                if (needs := [need for need in map(tuple, case.get('dependencies_actual') or ()) if need in why])}
        why |= more
    told: dict[tuple, tuple[str | None, str, str]] = {}
    first: dict[tuple, tuple] = {}
    for known, because in why.items():
        _, partition, environment = known
        told[known] = (None, sentence(environment, partition, because), because)
        first.setdefault((partition, environment, because), known)
    for (*place, because), known in first.items():
        lost = sum((*other[1:], why[other]) == (*place, because) and not keys[other].get('fixture') for other in why)
        told[known] = (verdict.FAIL, f"{told[known][1]}: {several(lost, 'check')} not run", because)
    return told
