'''The machine file: peaks, what is unknown and why, and detection on nodes written by hand.'''

import runpy
from types import SimpleNamespace

import numpy as np
import pytest

import rfm
from plumbline.errors import PlumblineError
from plumbline.model import baselines, metrics
from plumbline.system import datasheet
from plumbline.system.dmi import memory_slots

# 2 sockets x 8 channels of DDR5-4800, 3.8 GHz, 2 x 64 + 64 bytes per cycle.
SERVER = {
    'schema': 1,
    'memory': {'channels': 16, 'transfer_rate': 4800, 'bytes_per_transfer': 8,
               'source': 'datasheet'},
    'core': {'clock': 3.8, 'clock_source': 'datasheet', 'load_bytes_per_cycle': 128,
             'store_bytes_per_cycle': 64, 'source': 'manual'},
    'levels': {'L2': {'bytes_per_cycle': 64, 'source': 'manual'}},
}


def without(section, key, source_key='source', why='nobody knows'):
    return SERVER | {section: SERVER[section] | {key: None, source_key: why}}


def slot(locator, bank='Not Specified', size='32 GB', speed='4800 MT/s', rated='4800 MT/s'):
    '''One slot as dmidecode prints it.'''
    if size is None:
        return ('Handle 0x0031, DMI type 17, 92 bytes\nMemory Device\n\tArray Handle: 0x0022\n'
                f'\tSize: No Module Installed\n\tLocator: {locator}\n\tBank Locator: {bank}\n'
                '\tType: Unknown\n\tSpeed: Unknown\n')
    return ('Handle 0x0030, DMI type 17, 92 bytes\nMemory Device\n\tArray Handle: 0x0022\n'
            f'\tTotal Width: 80 bits\n\tData Width: 64 bits\n\tSize: {size}\n'
            f'\tLocator: {locator}\n\tBank Locator: {bank}\n\tType: DDR5\n\tSpeed: {rated}\n'
            f'\tConfigured Memory Speed: {speed}\n\tVolatile Size: {size}\n')


HEAD = ('# dmidecode 3.4\nGetting SMBIOS data from sysfs.\nSMBIOS 3.5.0 present.\n\n'
        'Handle 0x0022, DMI type 16, 23 bytes\nPhysical Memory Array\n\tLocation: System Board Or '
        'Motherboard\n\tNumber Of Devices: 8\n\n')


def dmi(*slots):
    return HEAD + '\n'.join(slots)


# 2 sockets with 4 channels each, two slots per channel, the second one empty; channel D of the
# second socket has no module at all.
TWO_SOCKETS = dmi(*(slot(f'CPU{cpu}_DIMM_{channel}{number}',
                         size='32 GB' if number == 1 and (cpu, channel) != (2, 'D') else None)
                    for cpu in (1, 2) for channel in 'ABCD' for number in (1, 2)))


@pytest.fixture
def node(tmp_path):
    '''A function that writes a root file system and returns its path.'''
    def write(flags='fpu sse2', driver='intel_pstate', max_freq='3800000', states='', boost=None):
        files = {'proc/cpuinfo': f'model name\t: CPU\ncpu MHz\t\t: 2596.1\nflags\t\t: {flags}\n'}
        if max_freq:
            for cpu in ('cpu0', 'cpu1'):
                folder = f'sys/devices/system/cpu/{cpu}/cpufreq'
                files |= {f'{folder}/cpuinfo_max_freq': f'{max_freq}\n',
                          f'{folder}/scaling_driver': f'{driver}\n',
                          f'{folder}/scaling_available_frequencies': f'{states}\n'}
        if boost is not None:
            files['sys/devices/system/cpu/cpufreq/boost'] = f'{boost}\n'
        return rfm.laid(tmp_path, files)
    return write


# --- peaks ---

def test_peaks_of_a_server():
    assert datasheet.peaks(SERVER, 64) == {
        ('memory', 'all'): 16 * 4800 * 8,                        # 614400 MB/s
        ('L1', 'one'): pytest.approx(192 * 3.8e3), ('L1', 'all'): pytest.approx(64 * 192 * 3.8e3),
        ('L2', 'one'): pytest.approx(64 * 3.8e3), ('L2', 'all'): pytest.approx(64 * 64 * 3.8e3)}
    given = SERVER | {'levels': {'L1': {'bytes_per_cycle': 100, 'source': 'measured by hand'}}}
    assert datasheet.peaks(given, 2)['L1', 'one'] == pytest.approx(380e3)


def test_processors_that_draw_less_than_their_channels_give(tmp_path):
    path = tmp_path / 'node.yaml'
    path.write_text('schema: 1\nmemory: {channels: null, transfer_rate: null, most: 170600, source: EPYC 7252}\n')
    given = datasheet.load(path)
    assert datasheet.peaks(given, 16)['memory', 'all'] == 170600 and datasheet.unknown(given, 'memory') is None
    assert datasheet.peaks({'memory': SERVER['memory'] | {'most': 170600}}, 16)['memory', 'all'] == 170600
    path.write_text('schema: 1\nmemory: {channels: 8, transfer_rate: 3200, source: datasheet}\n')
    assert datasheet.peaks(datasheet.load(path), 4) == {('memory', 'all'): 8 * 3200 * 8}


def of_memory(share, memory=SERVER['memory'], cpus=range(48), virtual='no'):
    '''What the check says of a share of the peak, on a node of 48 cores.'''
    check = runpy.run_path(str(rfm.REPOSITORY / 'checks/memory/limits.py'))['limits']
    processor = {'topology': {'cores': [hex(1 << cpu) for cpu in range(48)]}}
    notes = []
    case = SimpleNamespace(all_cpus=cpus, current_partition=SimpleNamespace(processor=processor), note=notes.append,
                           plumbline=SimpleNamespace(of_machine={'virtual': virtual}))
    found = check.of_memory(case, memory, 'node.yaml', datasheet.peaks({'memory': memory}, len(cpus))['memory', 'all'], share)
    assert notes == [f"the peak of memory: {memory['source']}"]
    return found


@pytest.mark.parametrize('cpus, unjudged', [(range(4), "4 of the node's 48 cores may be used"), (range(2, 48), None), (range(48), None)])
def test_part_of_a_node_is_not_judged_by_all_its_channels(cpus, unjudged):
    '''A quota or a cpuset of four cores; two of all are the system's.'''
    found = of_memory(0.5, cpus=cpus)
    assert found['unjudged'] == unjudged and '`most` of `memory` into node.yaml' in found['remark']
    assert f"the peak: {SERVER['memory']['source']}; " in found['remark']       # of which channels and rates


@pytest.mark.parametrize('share, given, ruling', [
    (0.66, {}, 'PASS'), (0.53, {}, 'FAIL'),      # 0.8 with every rate divided by 1.5
    (0.53, {'virtual': 'yes'}, 'NO REFERENCE'), (0.53, {'virtual': 'not known'}, 'NO REFERENCE'),
    (0.66, {'virtual': 'yes'}, 'PASS'), (1.3, {'virtual': 'yes'}, 'FAIL'),
    (0.43, {'memory': {'most': 2 * 1638400, 'source': 'HBM'}}, 'NO REFERENCE'),
    (0.53, {'memory': SERVER['memory'] | {'configured': 3200}}, 'NO REFERENCE'), (0.66, {'memory': SERVER['memory'] | {'configured': 4400}}, 'PASS'),
    (0.39, {'memory': SERVER['memory'] | {'configured': 3200}}, 'FAIL')])      # too slow for what it is configured for
def test_what_a_share_of_the_peak_proves(share, given, ruling):
    metric = metrics.Metric('of_peak', 'memory', np.full(9, share), **of_memory(share, **given))
    judged = rfm.by_shipped('limits', ['default', 'gnu', 'all'], metric)
    assert judged.verdict == ruling, judged.reason


def test_a_measured_clock_stands_in_for_one_that_is_not_known():
    core = {'clock': None, 'clock_source': 'virtual', 'load_bytes_per_cycle': 128, 'store_bytes_per_cycle': 64, 'source': 'datasheet'}
    given = {'schema': 1, 'core': core}
    assert datasheet.peaks(given, 2) == {}
    assert datasheet.peaks(given, 2, clock=3.0) == {('L1', 'one'): 576e3, ('L1', 'all'): 1152e3}
    assert 'clock not known' in datasheet.unknown(given, 'L1') and datasheet.unknown(given, 'L1', clock=3.0) is None
    known = {'schema': 1, 'core': {**core, 'clock': 3.8}}
    assert datasheet.peaks(known, 1, clock=3.0)['L1', 'one'] == pytest.approx(729.6e3)        # what it should reach


@pytest.mark.parametrize('given, level, reason', [
    (without('memory', 'channels', why='DMI not readable: /dev/mem: Permission denied'), 'memory',
     'peak unknown: memory channels not known (DMI not readable: /dev/mem: Permission denied); '
     'write them into node.yaml'),
    (without('core', 'clock', 'clock_source', 'inside a virtual machine'), 'L1',
     'peak unknown: clock not known (inside a virtual machine); write them into node.yaml'),
    (without('core', 'store_bytes_per_cycle'), 'L1',
     'peak unknown: bytes per cycle of L1 not known (nobody knows); write them into node.yaml'),
    (SERVER, 'L3', 'peak unknown: bytes per cycle of L3 not known; write them into node.yaml'),
    (None, 'L1', 'peak unknown: this system has no machine file; write them into node.yaml')])
def test_what_is_missing_is_unknown_and_said(given, level, reason):
    assert (level, 'all') not in datasheet.peaks(given, 4)
    assert datasheet.unknown(given, level, file='node.yaml') == reason


def test_known_peaks_have_no_reason():
    for level, scope in datasheet.peaks(SERVER, 4):
        assert datasheet.unknown(SERVER, level, scope) is None
    assert 'no datasheet value' in datasheet.unknown(SERVER, 'memory', 'one')
    reason = datasheet.unknown({'schema': 1}, 'memory')
    assert 'memory channels and transfer rate not known' in reason
    reason = datasheet.unknown({'schema': 1}, 'L1')
    assert 'bytes per cycle of L1 not known, clock not known' in reason


# --- the file ---


@pytest.mark.parametrize('text, message', [
    ('schema: 2\n', 'field schema'), ('', r'field \(top\)'), ('schema: [\n', 'not YAML'), (None, 'No such file'),
    ('schema: 1\nmemory: {channels: 8, transfer_rate: 3200}\n', "'source' is a required"),
    ('schema: 1\nmemory: {channels: eight, transfer_rate: 3200, source: x}\n', 'channels'),
    ('schema: 1\nmemory: {channels: -8, transfer_rate: 3200, source: x}\n', 'channels'),
    ('schema: 1\nmemory: {channels: 8, transfer_rat: 3200, source: x}\n', 'memory'),
    ('schema: 1\nlevels: {memory: {bytes_per_cycle: 8, source: x}}\n', 'levels'),
    # 2600 is a clock in MHz.
    ('schema: 1\ncore: {clock: 2600, clock_source: x, load_bytes_per_cycle: 64, store_bytes_per_cycle: 32, source: x}\n', 'in GHz')])
def test_bad_file_is_one_line(tmp_path, text, message):
    path = tmp_path / 'node.yaml'
    if text is not None:
        path.write_text(text)
    with pytest.raises(PlumblineError, match=message) as error:
        datasheet.load(path)
    assert '\n' not in str(error.value) and str(error.value).startswith(str(path))


# --- detection: memory ---

def test_channels_of_two_sockets_with_empty_slots():
    slots = memory_slots(TWO_SOCKETS)
    assert len(slots) == 16 and sum(slot['populated'] for slot in slots) == 7
    assert datasheet.memory_from_dmi(TWO_SOCKETS) == {
        'channels': 7, 'transfer_rate': 4800, 'bytes_per_transfer': 8,
        'source': 'dmidecode: 7 modules in 7 of 8 channels (4 of CPU1, 3 of CPU2)'}


@pytest.mark.parametrize('names, channels', [
    ([('DIMM 0', 'P0 CHANNEL A'), ('DIMM 1', 'P0 CHANNEL A'), ('DIMM 0', 'P0 CHANNEL B'),
      ('DIMM 0', 'P1 CHANNEL A')], 3),
    ([('CPU1_A1', 'P0_Node0_Channel0_Dimm0'), ('CPU1_B1', 'P0_Node0_Channel1_Dimm0'),
      ('CPU1_C1', 'P0_Node1_Channel0_Dimm0'), ('CPU2_A1', 'P1_Node0_Channel0_Dimm0')], 4),
    ([('P1-DIMMA1', 'BANK 0'), ('P1-DIMMA2', 'BANK 1'), ('P2-DIMMA1', 'BANK 2')], 2),
    ([('DIMM_P0_A0', 'BANK 0'), ('DIMM_P0_B0', 'BANK 0'), ('DIMM_P1_A0', 'BANK 0')], 3),
    ([('A1', ''), ('A2', '')], None),                    # the letter may be the socket
    ([('DIMM_A1', 'BANK 0'), ('DIMM_B1', 'BANK 1')], None),
    ([('PROC 1 DIMM 3', ''), ('PROC 1 DIMM 5', '')], None),
    ([('DIMM 0', 'CHANNEL A'), ('DIMM 0', 'CHANNEL B')], None)])     # which socket?
def test_channels_are_counted_where_names_tell_them(names, channels):
    text = dmi(*(slot(locator, bank) for locator, bank in names))
    found = datasheet.memory_from_dmi(text)
    assert found['channels'] == channels
    assert ('does not tell its channel' in found['source']) == (channels is None)


def test_speeds():
    def rate(*speeds):
        return datasheet.memory_from_dmi(dmi(*(
            slot(f'P1-DIMM{letter}1', speed=speed, rated=speed) for letter, speed in zip('ABC', speeds))))
    assert rate('4800 MT/s', '4400 MT/s')['transfer_rate'] == 4400
    assert 'the lowest counts' in rate('4800 MT/s', '4400 MT/s')['source']
    assert rate('4800 MT/s', 'Unknown')['transfer_rate'] is None
    old = dmi(slot('P1-DIMMA1', speed='2400 MHz', rated='2400 MHz')).replace('Memory Speed', 'Clock Speed')
    assert datasheet.memory_from_dmi(old)['transfer_rate'] == 2400


@pytest.mark.parametrize('speed, rated, rate, configured', [
    ('3200 MT/s', '4800 MT/s', 4800, 3200), ('4800 MT/s', '4800 MT/s', 4800, None), ('3200 MT/s', 'Unknown', 3200, None),
    ('3600 MT/s', '2133 MT/s', 3600, None)])        # overclocked
def test_modules_that_are_configured_for_less_than_they_are_rated_at(tmp_path, node, speed, rated, rate, configured):
    '''By a low profile in the BIOS, or because the processor allows no more.'''
    found = datasheet.detect(node(), 'zen4', (dmi(*(slot(f'P{cpu}-DIMMA1', speed=speed, rated=rated) for cpu in (1, 2))), None))
    assert (found['memory']['transfer_rate'], found['memory'].get('configured')) == (rate, configured)
    assert found['memory']['source'].endswith('; configured for 3200 MT/s, the modules are rated 4800' if configured else 'in 2 of 2 channels')
    datasheet.write(tmp_path / 'node.yaml', found)
    assert datasheet.load(tmp_path / 'node.yaml') == found


# --- detection: the node ---

def test_node_with_everything(node):
    found = datasheet.detect(node(), 'icelake', (TWO_SOCKETS, None))
    assert found['memory']['channels'] == 7
    assert found['core'] == {
        'clock': 3.8, 'clock_source': 'cpuinfo_max_freq (intel_pstate)',
        'load_bytes_per_cycle': 128, 'store_bytes_per_cycle': 64,
        'source': 'icelake: Intel 248966: two 64-byte loads and one 64-byte store'}
    assert datasheet.peaks(found, 4)['memory', 'all'] == 7 * 4800 * 8
    found = datasheet.memory_from_dmi(dmi(slot('P1-DIMMA1', size=None)))
    assert found['channels'] is None and found['transfer_rate'] is None


@pytest.mark.parametrize('given, arch, dmi, core, reasons', [
    ({'flags': 'fpu hypervisor sse2'}, 'zen5', (TWO_SOCKETS, None), {'clock': None, 'load_bytes_per_cycle': 128},
     {'L1': 'inside a virtual machine', 'memory': 'inside a virtual machine'}),
    ({}, 'zen3', (None, 'DMI not readable: /dev/mem: Permission denied'), {}, {'memory': 'Permission denied'}),
    ({}, 'zen4x', (TWO_SOCKETS, None), {'load_bytes_per_cycle': None}, {'L1': 'zen4x is not in'}),
    ({'max_freq': None}, 'zen2', (TWO_SOCKETS, None), {'clock': None}, {'L1': 'no cpufreq driver'})])
def test_what_a_node_does_not_tell_is_not_guessed(node, given, arch, dmi, core, reasons):
    found = datasheet.detect(node(**given), arch, dmi)
    assert core.items() <= found['core'].items() and not {(level, 'all') for level in reasons} & set(datasheet.peaks(found, 2))
    assert all(reason in datasheet.unknown(found, level) for level, reason in reasons.items())


@pytest.mark.parametrize('states, boost, clock', [
    ('2450000 1500000', '1', None),          # the highest P-state, while it boosts above it
    ('2450000 1500000', '0', 2.45), ('2000000 1500000', '1', 2.45), ('2450000', None, 2.45)])
def test_acpi_cpufreq_may_leave_out_the_boost(node, states, boost, clock):
    root = node(driver='acpi-cpufreq', max_freq='2450000', states=states, boost=boost)
    found = datasheet.detect(root, 'zen2', (TWO_SOCKETS, None))
    assert found['core']['clock'] == clock
    assert clock or 'without the boost' in datasheet.unknown(found, 'L1')


@pytest.mark.parametrize('told, expected', [
    ('vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n', 'zen4'),
    ('CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n', 'x86_64_v4')])
def test_a_processor_whose_flags_are_hidden(tmp_path, monkeypatch, told, expected):
    monkeypatch.setattr('archspec.cpu.host', lambda: SimpleNamespace(name='x86_64_v4'))
    (tmp_path / 'proc').mkdir()
    (tmp_path / 'proc/cpuinfo').write_text(told)
    assert datasheet.host_microarchitecture(tmp_path) == expected


def test_microarchitectures_are_archspecs():
    import archspec.cpu
    for name, values in baselines.microarchitectures().items():
        assert name in archspec.cpu.TARGETS and 'fma' in values
        assert 'load' not in values or values['load'] >= values['store']


@pytest.mark.parametrize('arch, bits, expected', [
    ('cascadelake', 512, 32), ('cascadelake', 256, 16), ('haswell', 64, 4), ('zen4', 512, 16), ('zen5', 512, 32), ('zen2', 128, 8),
    ('neoverse_v2', 128, 16), ('a64fx', 128, 8)])
def test_flops_per_cycle(arch, bits, expected):
    assert datasheet.flops_per_cycle(arch, bits) == (expected, None)


@pytest.mark.parametrize('arch', ['zen99', '', None])
def test_flops_per_cycle_of_an_unknown_microarchitecture(arch):
    known, reason = datasheet.flops_per_cycle(arch, 256)
    assert known is None and reason == f"peak unknown: microarchitecture {arch or 'unknown'} is not in microarchitectures.yaml"


def test_second_level_cache_of_a_virtual_machine_has_a_peak_at_the_measured_clock(node):
    root = node(flags='fpu hypervisor sse2')
    found = datasheet.detect(root, 'cascadelake', (TWO_SOCKETS, None))
    assert datasheet.peaks(found, 2, clock=3.0) == {
        ('L1', 'one'): 576e3, ('L1', 'all'): 1152e3, ('L2', 'one'): 192e3, ('L2', 'all'): 384e3}
    assert 'bytes per cycle of L3 not known' in datasheet.unknown(found, 'L3', clock=3.0)
    assert 'levels' not in datasheet.detect(root, 'zen3', (TWO_SOCKETS, None))


# --- writing ---

@pytest.mark.parametrize('flags, arch', [('fpu', 'zen4'), ('fpu hypervisor', 'zen4'), ('fpu', 'zen2')])
def test_what_is_written_can_be_read(node, tmp_path, flags, arch):
    found = datasheet.detect(node(flags=flags), arch, (TWO_SOCKETS, None))
    path = tmp_path / 'node.yaml'
    datasheet.write(path, found)
    assert datasheet.load(path) == found
    text = path.read_text()
    assert ('clock: null  # GHz, the highest that a core reaches; not known' in text) == (
        'hypervisor' in flags)
    with pytest.raises(PlumblineError, match='exists; remove it'):
        datasheet.write(path, found)
    with pytest.raises(PlumblineError, match='choose a folder'):
        datasheet.write(tmp_path / 'no' / 'node.yaml', found)


def test_a_file_that_was_written_for_another_processor_says_nothing(node, tmp_path):
    '''As after a disk has moved, or of a home that several machines share.'''
    path = tmp_path / 'node.yaml'
    datasheet.write(path, datasheet.detect(node(flags='fpu hypervisor'), 'zen4', (TWO_SOCKETS, None)))
    partition = SimpleNamespace(extras={'machine': str(path)})
    own, _ = datasheet.of_partition(partition, 'zen4')
    assert datasheet.peaks(own, 1, 3.0) == {('L1', 'one'): 288_000, ('L1', 'all'): 288_000}
    assert datasheet.of_partition(partition)[0] == datasheet.of_partition(partition, None)[0] == own
    other, file = datasheet.of_partition(partition, 'sapphirerapids')
    assert datasheet.peaks(other, 1, 3.0) == {}
    assert datasheet.unknown(other, 'L1', 'one', file, 3.0) == (
        f'peak unknown: bytes per cycle of L1 not known (written for zen4, and this is sapphirerapids: remove the file, or name another); '
        f'write them into {path}')
    # Older files do not say what they were written for.
    path.write_text('\n'.join(line for line in path.read_text().splitlines() if not line.startswith('microarchitecture')))
    assert datasheet.of_partition(partition, 'sapphirerapids')[0] == {key: value for key, value in own.items() if key != 'microarchitecture'}


def test_this_node_can_be_described(tmp_path):
    path = tmp_path / 'node.yaml'
    datasheet.write(path, datasheet.detect())
    for level in ('L1', 'memory'):
        peaks = datasheet.peaks(datasheet.load(path), 1)
        assert ((level, 'all') in peaks) == (datasheet.unknown(datasheet.load(path), level) is None)
