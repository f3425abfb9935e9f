"""What the session ran on: state of the machine, software, and where the time went, as rows for the page.

A row is (label, list of (value, hosts)): one value where all hosts agree, several with the hosts named where not.
What could not be read is 'not readable'.
"""

from plumbline.analysis.answers import some
from plumbline.model import quantity
from plumbline.model.grouping import by_key
from plumbline.system.topology import cpu_list

UNREADABLE = 'not readable'

#: Key of the machine record -> label, in the order shown.
MACHINE = {'cpu_model': 'CPU', 'caches': 'caches', 'memory_kib': 'memory', 'numa_nodes': 'NUMA nodes', 'kernel': 'kernel', 'microcode': 'microcode',
           'governor': 'frequency governor', 'scaling_driver': 'frequency driver', 'huge_pages': 'transparent huge pages',
           'numa_balancing': 'NUMA balancing', 'cpu_quota': 'CPU quota', 'allowed_cpus': 'allowed CPUs', 'mitigations': 'mitigations',
           'clock_resolution': 'clock resolution'}

#: Of them what is measured anew each time: that it is not the same says nothing.
MEASURED = ('clock_resolution',)


def machine_rows(details):
    '''Rows for the machine records of these results.'''
    machines = [(detail.get('hostname') or detail['machine'].get('hostname') or 'unknown host', detail['machine'])
                for detail in details if detail.get('machine')]
    hosts = {host for host, _ in machines}
    return [(label, _values(told, hosts)) for key, label in MACHINE.items()       # some tests tell a part of it only
            if (told := [(host, _SHOW.get(key, _shown)(machine[key])) for host, machine in machines if key in machine])]


def software_rows(details, session):
    '''Rows for ReFrame, compilers, flags and what else the programs were built and run with.'''
    rows = [('ReFrame', [(str(session.get('version') or UNREADABLE), '')])]
    records = [record for detail in details for record in detail.get('records') or []]
    built = by_key(((one.get('compiler') or UNREADABLE, one.get('flags') or UNREADABLE),
                    one['variant'] if one['role'] == 'kernel' else 'limit streams') for one in records)
    told = [(': '.join(how), f"for {', '.join(dict.fromkeys(names))}" if len(built) > 1 else '') for how, names in built.items()]
    libraries = {record['options']['mpi']: None for record in records if (record.get('options') or {}).get('mpi')}
    locks: dict[tuple[str, str], None] = {}
    settings: dict[str, dict[str, None]] = {}
    for detail in details:
        software = detail.get('software') or {}
        for text in (*(f'module {name}' for name in software.get('modules') or ()), *(software.get('variables') or ())):
            settings.setdefault(text, {})[detail['environ']] = None
        if spack := software.get('spack'):
            text = f"{spack['environment']}, spack.lock {spack['lock_hash']}: {spack['specs'][0]}"
            locks[f"{text}, and {len(spack['specs']) - 1} more (in the archive)", detail['environ']] = None
    rows += [('compiler and flags', told)] if told else []
    rows += [('MPI library', [(text, '') for text in libraries])] if libraries else []
    rows += [('modules and variables', [(text, f"for {', '.join(names)}") for text, names in settings.items()])] if settings else []
    return rows + [('Spack environment', [(text, f'for {name}') for text, name in locks])] if locks else rows


def notes(details):
    '''(note, labels of the checks that made it), each note once; that nobody confirmed the limits is one.'''
    told = ((note, detail['label']) for detail in details for note in (*(detail.get('notes') or ()), detail.get('cross_check_reason')) if note)
    return [(note, list(dict.fromkeys(labels))) for note, labels in by_key(told).items()]


def time_rows(cases, session):
    """(rows per check, total): where the wall time of all runs went.

    Each row: check, runs, and the seconds of build, setup, run and timed loops; the total also has ``elapsed`` of the
    session and the ``share`` of it that was spent inside timed loops (None if the session's time is unknown).
    """
    columns = {'build': 'time_compile', 'setup': 'time_setup', 'run': 'time_run', 'timed': 'timed_seconds'}
    checks: dict[str, dict] = {}
    for runs in cases.values():
        for run in runs:
            name = f"{run[0]['check']} (fixture)" if run[0]['fixture'] else run[0]['check']
            sums = checks.setdefault(name, {'check': name, 'runs': 0} | dict.fromkeys(columns, 0.0))
            sums['runs'] += 1
            for name, column in columns.items():
                sums[name] += next((row[column] for row in run if row[column] is not None), 0.0)
    total: dict[str, float | None] = {name: sum(sums[name] for sums in checks.values()) for name in ('runs', *columns)}
    elapsed = session.get('time_elapsed')
    total |= {'elapsed': elapsed, 'share': total['timed'] / elapsed if elapsed else None}
    return sorted(checks.values(), key=lambda sums: -sums['build'] - sums['run']), total


def _values(pairs, hosts):
    '''Distinct values; where hosts differ, each with the hosts that have it.'''
    gathered = by_key((value, host) for host, value in dict.fromkeys(pairs))
    if len(gathered) == 1 or len(hosts) == 1:
        return [(value, '') for value in gathered]
    return [(value, f'{len(having)} of {len(hosts)} hosts: {some(having, 8)}') for value,
            having in sorted(gathered.items(), key=lambda item: len(item[1]))]


def _shown(value):
    return UNREADABLE if value is None or value == '' else str(value)


def _caches(caches):
    if not caches:
        return UNREADABLE
    told: dict[str, None] = {}
    for cache in caches:
        shared = len(cache.get('shared_cpus') or [])
        told[f"L{cache['level']} {quantity.size(cache['size'])}, {cache.get('line') or '?'} B lines, "
             + (f"per {quantity.several(shared, 'CPU')}" if shared else 'sharing unknown')] = None
    return '; '.join(told)


def _mitigations(mitigations):
    if not mitigations:
        return UNREADABLE
    clear = [name for name, text in mitigations.items() if text == 'Not affected']
    told = [f'{name}: {text}' for name, text in mitigations.items() if text != 'Not affected']
    return '; '.join(told + ([f"not affected: {', '.join(clear)}"] if clear else []))


_SHOW = {'caches': _caches, 'mitigations': _mitigations, 'memory_kib': lambda kib: UNREADABLE if kib is None else quantity.size(kib * 1024),
         'numa_nodes': lambda nodes: (UNREADABLE if not nodes
                                      else '; '.join(f"node {node['node']}: CPUs {cpu_list(node['cpus'])}" for node in nodes)),
         'allowed_cpus': lambda cpus: UNREADABLE if not cpus else f'{cpu_list(cpus)} ({len(cpus)} in all)',
         'cpu_quota': lambda quota: 'none or not readable' if quota is None else f'{quota:g} CPUs',
         'numa_balancing': lambda value: (UNREADABLE if value in (None, '') else {'0': 'off', '1': 'on'}.get(str(value), str(value))),
         'clock_resolution': lambda value: UNREADABLE if value is None else quantity.amount(value, 's')}
