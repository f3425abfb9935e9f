'''The file systems that a site wants measured, what a first look finds there, and the checks on them.

A partition lists them in its ``extras``::

    'extras': {'file_systems': [{'name': 'scratch', 'path': '/scratch/$USER', 'type': 'lustre'}, ...]}

Variables are those of the job, replaced where it runs.  Where a ``type`` is given, and the path is on a file system of another one, the
check FAILs and measures nothing: of what is not mounted the folder is there all the same.  Without a list these are measured: the
stage folder of the test (``stage``) and the memory file system ``/dev/shm`` (``shm``) where it is there.  Nothing is written elsewhere.
'''

import re
import shlex

import reframe as rfm
from reframe.core.builtins import fixture, run_after, run_before, sanity_function, variable
from reframe.core.pipeline import RegressionTestPlugin
from reframe.core.runtime import runtime

from plumbline import references
from plumbline.errors import PlumblineError, in_one_line
from plumbline.model import metrics, records
from plumbline.model.quantity import percent, size
from plumbline.model.result import UNSET
from plumbline.rfm.check import NativeCheck
from plumbline.rfm.job import Job
from plumbline.rfm.programs import native_programs
from plumbline.rfm.variables import Whole

DEFAULT = ({'name': 'stage', 'path': '.'}, {'name': 'shm', 'path': '/dev/shm'})

#: These are the page cache itself.
IN_MEMORY = ('tmpfs', 'ramfs', 'devtmpfs')

#: Operation -> why there is no such thing in memory.
NOT_IN_MEMORY = {'read_cold': 'nothing can be dropped from it', 'write_fsync': 'there is no device to write to'}

#: What references are recorded of is measured though it takes so many times as long as there is time for: how slow it is has to show.
MOST_PATIENCE = 3

#: Pages of a file that stay in the page cache although they were advised to go, as a share of the file: more is not cold.
MOST_RESIDENT = 0.05

#: Bytes of the file that a first look writes.
LOOK_BYTES = 16_000_000

_MARK = 'plumbline file system: '
_ILL_FORMED = '(not readable)'


def of_partition(partition):
    '''The file systems of a partition: name -> entry of the list.

    :raises PlumblineError: for a list that is not one, names that are no words or stand there twice, paths that are not
        absolute, types that are no words of ``/proc/mounts``.
    '''
    listed = partition.extras.get('file_systems')
    if not listed:
        return {entry['name']: entry for entry in DEFAULT}
    where = f"extras['file_systems'] of {partition.fullname}"
    found: dict[str, dict[str, str]] = {}
    for entry in listed if isinstance(listed, list) else [listed]:
        name, path = (entry.get('name'), entry.get('path')) if isinstance(entry, dict) else (None, None)
        if not isinstance(name, str) or not isinstance(path, str) or set(entry) - {'name', 'path', 'type'}:
            raise PlumblineError(f"{where}: {entry!r} is not understood; write {{'name': 'scratch', 'path': '/scratch/$USER'}}")
        if not re.fullmatch('[a-z][a-z0-9_]*', name) or name in found:
            raise PlumblineError(f'{where}: the name {name!r} must be a word of small letters, digits and _, and stand there once; choose another')
        if not re.match(r'[/$]', path):
            raise PlumblineError(f'{where}: the path {path!r} of {name} must begin with / or with a variable')
        if 'type' in entry and not (isinstance(entry['type'], str) and re.fullmatch('[A-Za-z0-9_.-]+', entry['type'])):
            raise PlumblineError(f"{where}: the type {entry['type']!r} of {name} must be a word of /proc/mounts, as lustre or nfs4; see "
                                 f'df --output=fstype {path}')
        found[name] = entry
    return found


def names():
    '''Names of the file systems of all partitions, for a test's parameter.

    Does not raise: ReFrame would skip the check and pass.  The test of an ill-formed list fails when it is set up.
    '''
    found = []
    for partition in runtime().system.partitions:
        try:
            found += of_partition(partition)
        except PlumblineError:
            found.append(_ILL_FORMED)
    return list(dict.fromkeys(found))


class first_look(rfm.RunOnlyRegressionTest, Job):
    '''Which file systems are there, of which type, how much room do they have, how fast are they about?'''

    valid_systems = ['*']
    valid_prog_environs = ['*']
    sourcesdir = None
    programs = fixture(native_programs, scope='environment')
    executable = 'sh'
    executable_opts = ['first_look.sh']

    @run_before('run')
    def write_script(self):
        with in_one_line():
            found = of_partition(self.current_partition)
        options = ['--variants', 'c', '--operation', 'write_fsync,read_warm', '--size', LOOK_BYTES // 8, '--samples', 10, '--passes', 1]
        script = ''
        for name, entry in found.items():
            command = [self.programs.path('fileio-serial'), *options, '--name', name, '--directory', entry['path']]
            # What one of them refuses is for the check that measures it to say.
            script += f'echo {shlex.quote(_MARK + name)}\n{shlex.join(map(str, command))} 2>&1 || true\n'
        self.write_file('first_look.sh', script)

    @sanity_function
    def looked(self):
        return True

    def found(self, name):
        '''(records by operation, reason): what there is, or None and why not.'''
        parts = re.split(f'^{_MARK}(.*)$', self.output(), flags=re.MULTILINE)
        text = dict(zip(parts[1::2], parts[2::2])).get(name, '')
        seen = {record['options']['operation']: record for record in records.parse(text, f'first look at {name}').measurements}
        said = [line for line in text.splitlines() if line.startswith('plumbline: ')]
        return (seen, None) if len(seen) == 2 and not said else (None, (said or ['the first look ended early'])[-1])


class OneFileSystem(RegressionTestPlugin):
    '''What a check has that measures one file system: its parameter is ``file_system``, one of :func:`names`.'''

    subsystem = 'files'
    file_system: str

    @property
    def shares(self):
        return f'files-{self.file_system}'

    @run_after('setup')
    def choose_file_system(self):
        with in_one_line():
            entry = of_partition(self.current_partition).get(self.file_system)
        if entry is None:
            self.leave(f'{self.file_system} is a file system of another partition')
        self.path, self.expected_type = entry['path'], entry.get('type')

    def leave(self, reason):
        self.skip_test(reason)

    def refuse_other_type(self, found):
        '''Compare what a record of our program says with the type in the site's list: nfs is any version of it, nfs4 is that one.

        :arg found: options of the record.
        :raises PlumblineError: if it is of another type.
        '''
        if self.expected_type and not re.fullmatch(f'{re.escape(self.expected_type)}[0-9]?', found['file_system']):
            raise PlumblineError(self._other_type(found['path'], found['file_system']))

    def _other_type(self, path, found):
        return f'{self.file_system}: {path} is on {found} where {self.expected_type} was to be: is it mounted?'

    def end_on_other_type(self):
        '''The same as lines of a job that works in ``$folder``, for programs that do not say what they wrote to.'''
        if not self.expected_type:
            return []
        # The kernel's name, as our program finds it: stat -f has names of its own, and does not tell ext4 from ext3.
        said = self._other_type('${folder%/*}', '${kind:-a file system of unknown type}')
        return ['kind=$(df --output=fstype "$folder" | tail -n 1)',
                f'case $kind in {self.expected_type} | {self.expected_type}[0-9]) ;; *) echo "plumbline: {said}" >&2; exit 1 ;; esac']


class FileSystemCheck(OneFileSystem, NativeCheck):
    '''A check that measures one file system by our program; the test has ``size``, a text for people.'''

    look = fixture(first_look, scope='environment')

    #: Variants whose metric ``speedup`` is measured as well.
    compared = ()

    #: Seconds that the timed passes of one file system may take; what would take longer is skipped and said to be.
    seconds = variable(Whole, value=45, loggable=False)

    @property
    def level(self):
        '''What tells this test from the others of its check, in reports and references.'''
        return f'{self.size} on {self.file_system}'

    def leave(self, reason):
        self.plumbline.level = self.level
        self.skip_test(reason, None)

    def first_look(self):
        '''The records of the first look; a default file system that is not there is no failure.'''
        seen, reason = self.look.found(self.file_system)
        if seen is None and not self.current_partition.extras.get('file_systems') and self.file_system == 'shm':
            self.leave(reason)
        if seen is None:
            raise PlumblineError(f'{self.file_system}: {reason}')
        return seen

    def arguments(self, variants, elements, passes, files):
        '''Options of the program: what of this fits into the room and the time that there are.

        :arg passes: how many passes each variant makes of each operation, at least.
        :arg files: bytes that all files have together, per operation.
        '''
        operations = ['write', 'read_warm', 'write_fsync', 'read_cold']
        if not self.is_dry_run():
            seen = self.first_look()
            facts = seen['write_fsync']['options']
            self.refuse_other_type(facts)
            self.need_room(facts, 2 * files, elements)
            recorded = {name.rpartition('.')[2] for name in references.of_site(self)}
            operations = self.what_fits(operations, 8 * elements * len(variants) * passes, seen, facts['file_system'], variants, recorded)
        return ['--variants', ','.join(variants), '--operation', ','.join(operations), '--size', elements,
                '--directory', self.path, '--name', self.file_system]

    def need_room(self, facts, files, elements):
        '''Leave where the files would fill the file system, or they and the arrays the memory.'''
        free, in_memory = facts.get('free_bytes'), facts['file_system'] in IN_MEMORY
        if free is not None and free < 2 * files:
            self.leave(f'{self.size} needs {size(files)} of files in {facts["path"]} ({facts["file_system"]}), and less '
                       f'than twice as much is free ({size(free)})')
        if self.memory is not None and 16 * elements + files * in_memory > self.memory / 2:
            self.leave(f'{self.size} and what goes with it needs more than half of the memory')

    def what_fits(self, operations, moved, seen, kind, variants, recorded=()):
        '''The operations that make sense there and for which there is time; of the others is said why not.

        :arg moved: bytes that each operation writes or reads in all.
        :arg recorded: operations that the site has references of: the slower it has become, the less there would be time for.
        :raises PlumblineError: if one of these cannot be measured.
        '''
        rate = {name: metrics.bandwidth(record, name).value * 1e6 for name, record in seen.items()}
        chosen, left = [], self.seconds
        for operation in operations:
            if kind in IN_MEMORY and operation in NOT_IN_MEMORY:
                if operation in recorded:
                    raise PlumblineError(f'{self.file_system} is {kind}, the memory itself, and references are recorded of its {operation}: '
                                         'is it mounted?')
                self.skip_metric(f'all of {operation}', f'{kind} is the memory itself: {NOT_IN_MEMORY[operation]}', [operation])
                continue
            # As if all but warm reads went to the device.
            seconds = moved / rate['read_warm' if operation == 'read_warm' else 'write_fsync']
            if seconds <= left or (operation in recorded and seconds <= MOST_PATIENCE * self.seconds):
                left = max(0, left - seconds)
                chosen.append(operation)
                continue
            if operation in recorded:
                raise PlumblineError(f'{self.file_system}: {operation} would take about {seconds:.0f} s at the rate of the first look, of '
                                     f'{self.seconds} s, and references are recorded of it: it was faster then')
            for variant in variants:
                self.skip_case(variant, operation, reason=f'it would take about {seconds:.0f} s, and of {self.seconds} s {left:.0f} are left')
        if not chosen:
            self.leave('there is no time for any operation')
        return chosen

    def estimate(self, found):
        '''Say how long files take that nobody waits for: at the rate of a metric, MB/s of payload (arsc2002's table has both sizes).'''
        self.note(f'{found.subject}: at this rate 1 GB takes {1e3 / found.value:.3g} s and 10 GB {1e4 / found.value:.3g} s, which is an estimate')

    def compare_file_systems(self):
        '''Say how this file system's rates compare with those of the others, by the first look.'''
        own, _ = self.look.found(self.file_system)
        for name in of_partition(self.current_partition):
            other, _ = self.look.found(name)
            if own and other and name != self.file_system:
                ratios = {operation: metrics.bandwidth(record, None).value / metrics.bandwidth(other[operation], None).value
                          for operation, record in own.items()}
                self.note(f'first look, {size(LOOK_BYTES)}: {self.file_system} over {name}: '
                          + ', '.join(f'{operation} {ratio:.2f}' for operation, ratio in ratios.items()))

    def skip_case(self, variant, operation, **why):
        for metric in ('bandwidth', *(['speedup'] if variant in self.compared else [])):
            self.skip_metric(f'{metric}.{variant}.{operation}', **why)

    def worth_saying(self, group):
        '''The records whose page cache was as it is said to be; notes tell the rest.'''
        records = metrics.kernels(group)
        # What another variant could do here is noise; what none can is the file system's, or the node's.
        possible = {record['options']['operation'] for record in records if not self.wrong_state(record['options'])}
        for record in records:
            found = record['options']
            self.refuse_other_type(found)       # the job may be on another node than the first look
            self.note(f"{self.file_system}: {found['file_system']} at {found['path']}; array {found['shape']}, files {found['kept']}")
            if complaint := self.wrong_state(found):
                not_warm = found['operation'] == 'read_warm' and found.get('resident') is not None
                symptom = 'not_warm' if not_warm else 'noise' if found['operation'] in possible else UNSET
                self.skip_case(record['variant'], found['operation'], reason=complaint, symptom=symptom)
            else:
                yield record
        self.note('write: into the page cache, which may write behind; write_fsync: until the device has it; read_warm: all '
                  'pages in the page cache, as mincore() saw; read_cold: pages dropped by posix_fadvise(), which is advice, and '
                  'gone as mincore() saw; the caches of devices and servers are as they are')

    @staticmethod
    def wrong_state(found):
        resident = found.get('resident')
        if not found['operation'].startswith('read'):
            return None
        if resident is None:
            return 'mincore() does not show here what the page cache holds'
        if found['operation'] == 'read_cold' and resident > MOST_RESIDENT:
            return f'{percent(resident, 0)} of the pages stayed in the page cache although they were advised to go: not cold'
        if found['operation'] == 'read_warm' and resident < 1 - MOST_RESIDENT:
            return f'only {percent(resident, 0)} of the pages were in the page cache: not warm'
        return None
