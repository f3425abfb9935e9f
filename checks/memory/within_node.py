import shlex

import numpy as np
import reframe as rfm
from reframe.core.builtins import parameter, run_after, variable

from plumbline.likwid import pin
from plumbline.model import baselines, grouping, metrics, probes, records, uncertainty
from plumbline.rfm.check import NativeCheck
from plumbline.rfm.variables import Whole
from plumbline.system import topology

#: Parameter -> (levels that a part is measured in, parts that can be compared, at least, floor of portable.yaml).
PARTS = {'cores': (['L1', 'L2'], 3, 0.85), 'caches': (['memory'], 2, 0.9), 'numa_domains': (['memory'], 2, 0.9), 'sockets': (['memory'], 2, 0.9)}


def named(part, of, machine):
    '''The CPUs of a part, and of a domain or a socket also the number of each NUMA domain, as the kernel counts them.'''
    domains = [str(one['node']) for one in machine.get('numa_nodes') or () if not {*part}.isdisjoint(one['cpus'])]
    text = f'CPU {topology.cpu_list(part)}'
    return f"{text} of NUMA domain {', '.join(domains)}" if of in ('numa_domains', 'sockets') and domains else text


@rfm.simple_test
class within_node(rfm.RunOnlyRegressionTest, NativeCheck):
    '''Is one core, one last-level cache, one NUMA domain or one socket of the node slower than its fellows, each measured alone, by turns?

    A core with half of its cache, or a domain that lacks a memory module, shows without any history.
    '''

    source = 'hager2004, section 4: the vector triad, by a part of the node at a time'
    subsystem = 'levels'
    program = 'triad'
    threads = 'all'
    of = parameter(list(PARTS), type=str)
    tags = {'node', 'health', 'acceptance'}
    OF_A_GIB = 10       # one variant, in many processes

    #: How often each part has its turn.
    rounds = variable(Whole, value=3, loggable=False)

    @run_after('setup')
    def choose_parts(self):
        self.levels, least, _ = PARTS[self.of]
        self.parts, fewer = topology.parts(self.current_partition.processor, self.of, self.all_cpus)
        if self.of in ('caches', 'sockets') and topology.has_sockets_of_one_core(self.current_partition.processor):
            self.skip_test('each socket has one core: of=cores compares those', f'of_median.{self.levels[-1]}')
        if self.of == 'caches' and topology.last_level(self.current_partition.processor) == 'L2' and all(len(part) == 1 for part in self.parts):
            self.skip_test('there is no L3, and each L2 is of one core: of=cores compares those', f'of_median.{self.levels[-1]}')
        if fewer:
            self.note(f"not compared, of fewer CPUs than the others: {'; '.join(map(topology.cpu_list, fewer))}")
        if len(self.parts) < least:
            self.skip_test(f"{len(self.parts)} {self.of.replace('_', ' ')} cannot be compared: {least} at least", f'of_median.{self.levels[-1]}')
        self.processes = self.rounds * len(self.parts)

    @property
    def cpus(self):
        '''Those of a part: all parts have working sets of one size.'''
        return max(self.parts, key=len)

    @property
    def samples_of_each(self):
        return records.MIN_SAMPLES

    def options(self):
        return ['--variants', 'plain', '--size', ','.join(str(self.elements(level, 32)) for level in self.levels), '--min-time', '0.002']

    def start(self, command):
        commands = [['env', *(f'{key}={value}' for key, value in pin.omp_environment(part).items()), 'taskset', '-c', topology.cpu_list(part),
                     *command[:1], '--threads', len(part), '--cpus', ','.join(map(str, part)), *command[1:]] for part in self.parts]
        turns = ' '.join(f'{number}) exec {shlex.join(map(str, one))};;' for number, one in enumerate(commands))
        self.plumbline.threads = self.threads
        self.write_file('parts.sh', f'case $((($1 - 1) % {len(self.parts)})) in {turns} esac')      # as one word it may be too long
        self.executable, self.executable_opts = 'sh', ['parts.sh', '$process']
        return commands[0]

    def placing(self):
        return super().placing()[2:]        # the CPUs are each part's own

    def misplaced(self, record):
        return records.check_placement(record, self.parts[record['process'] % len(self.parts)])

    def pooled(self, measurements):
        '''A process for each part and round becomes a case for each part, in as many processes as there are rounds.'''
        return super().pooled([{**record, 'process': record['process'] // len(self.parts)} for record in measurements])

    def evaluated(self):
        rates = grouping.by_key(((record['level'], record['process']), records.median_rate(record)) for record in metrics.kernels(self.measurements))
        kinds, cpus = self.plumbline.of_machine.get('core_kinds', ()), [part[0] for part in self.parts]
        self.by_round = {which: uncertainty.of_fellows(np.array(own), cpus, kinds) for which, own in rates.items()}
        return super().evaluated()

    def evaluate(self):
        for level, own in grouping.by_key((record['level'], record) for record in metrics.kernels(self.measurements)).items():
            yield from self.in_level(level, own)

    def in_level(self, level, of_parts):
        # The part that is slowest in most rounds: the slowest of each round would be another one each time, by chance, and of many parts lower.
        usual = np.median([shares for (one, _), shares in self.by_round.items() if one == level], axis=0)
        if np.isnan(usual).all():
            self.skip_metric(f'of_median.{level}', 'the cores are of several kinds, and none has two parts', subsystem=level)
        else:
            worst = int(np.nanargmin(usual))
            share = self.by_round[level, of_parts[0]['process']][worst]
            names = [named(part, self.of, self.plumbline.of_machine) for part in self.parts]
            slow = [number for number in np.argsort(usual) if number != worst and usual[number] < PARTS[self.of][2]]
            others = ', '.join(f'{names[number]} ({usual[number]:.2f})' for number in slow)
            beside = next((told for record, told in zip(of_parts, probes.beside_others(of_parts)) if record['cpus'] == self.parts[worst]), None)
            yield metrics.Metric('of_median', level, np.array([min(1.0, share)]), subsystem=level,
                                 doubt=self.others(beside, share), explains=metrics.TWO_ON_A_CORE,
                                 remark=f'the slowest has {names[worst]}' + (f'; below the floor, too: {others}' if others else ''))
        yield metrics.Metric('bandwidth', level, np.array([np.median([records.median_rate(record) for record in of_parts])]), subsystem=level)

    def others(self, beside, share):
        '''Why a part need not be what is slow, or None.

        :arg beside: of :func:`probes.beside_others`, of the part.
        '''
        machine = self.plumbline.of_machine
        few = topology.too_few(self.current_partition.processor, self.all_cpus)
        others = 'neighbours on the host' if baselines.virtual(machine) else few and f'others, since {few},'
        if others and share >= topology.BESIDE_OTHERS:
            return f'{others} may have taken that much'
        if self.of != 'cores' or machine.get('core_kinds'):     # cores of another kind do another number of additions
            return None
        return probes.doubt_beside(beside)
