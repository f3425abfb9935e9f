'''What holds of any text and any numbers: parsers refuse in one line what they cannot read, statistics keep their order.'''

import contextlib
import itertools
import json
import math
import pathlib
import re
import string
import tempfile
import types
from unittest import mock

import numpy as np
import pytest
from hypothesis import HealthCheck, core, example, given, settings, strategies as st
from reframe.core.exceptions import SanityError

import made_report
import rfm
import test_burn_series
import test_codegen
import test_gate
import test_likwid
import test_named
from plumbline import detect, judged, private, references
from plumbline.detect import file_systems, modules, pbs, slurm
from plumbline.errors import PlumblineError
from plumbline.gate import files, record
from plumbline.gate.packed import facts
from plumbline.gate.packed.node import Node
from plumbline.imb import subjects, text as imb
from plumbline.likwid import bench_output, features, perfctr
from plumbline.model import baselines, burn, capacity, changes, contention, prediction, processor, records, registry, spatter, subsystems, uncertainty
from plumbline.model.environment_errors import cause
from plumbline.model.parameters import as_words, of_display_name
from plumbline.model.safe_text import masked, shown
from plumbline.model.stamp import begun, of as stamp_of
from plumbline.model.states import GAP, clusters
from plumbline.model.verdict import SEVERITY, judge, judge_expected
from plumbline.mpi import loopback
from plumbline.mpi.families import families
from plumbline.nodes import events, history
from plumbline.report import notify
from plumbline.report.public import without_paths
from plumbline.rfm import capacity as setting, spack
from plumbline.scheduler import job_state, schedule, submit_errors
from plumbline.simulation import network, predict
from plumbline.store import archive, perflogs
from plumbline.sweep import locality, node, plan, results, slurm as sweep_slurm, state
from plumbline.system import cgroup, codegen, datasheet, dmi, topology, topology_file

# With --hypothesis-seed others are drawn.
settings.register_profile('here', max_examples=20, deadline=None, derandomize=core.global_force_seed is None, database=None,
                          suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
settings.load_profile('here')

CONFIG = rfm.REPOSITORY / 'config'
POSITIVE = st.floats(1e-9, 1e12)
SAMPLES = st.lists(POSITIVE, min_size=1, max_size=40)
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
                    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=8), part, max_size=3), max_leaves=8)


# --- parsers ------------------------------------------------------------------------------------------------------------

def of_text(parse, *more, **asked):
    '''A parser of a file from one of a text, and more.'''
    return lambda path: parse(path.read_text(errors='replace'), *more, **asked)


def of_answer(question, *more):
    '''The same from a function that asks other programs: each prints that text.'''
    def parser(said):
        done = types.SimpleNamespace(returncode=0, stdout=said, stderr='')
        with mock.patch('subprocess.run', lambda *_, **__: done), mock.patch('shutil.which', lambda *_, **__: '/bin/true'):
            return question(*more)
    return of_text(parser)


def of_folder(name, load, **others):
    '''The same of a file of that name in a folder, beside others (``name__json`` for ``name.json``).'''
    def parser(path):
        folder = path.parent / 'folder'
        for file, text in {**{other.replace('__', '.'): text.encode() for other, text in others.items()}, name: path.read_bytes()}.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(text)
        with mock.patch.object(events, 'FOLDER', folder):
            return load(folder)
    return parser


class Says(Node):
    '''A node of which every file and command says the same.'''
    def __init__(self, said):
        super().__init__(packages=['libc6'], services=['munge'])
        self.text, self.ask = lambda name: said.strip(), lambda *_, **__: (said, None)
        self.files = lambda pattern: [re.sub(r'\[0-9\]\*|\*', '0', pattern)]


def volumes(text):
    parsed = perfctr.parse_perfctr_csv(text)
    return [(perfctr.memory_volume_bytes(parsed, region), parsed[region]['MEM']) for region in ('triad', 'copy')]


def of_runs(said):
    case = types.SimpleNamespace(is_dry_run=lambda: False, output=lambda: said, repeat=2, plumbline=types.SimpleNamespace(), pooled=lambda runs: runs)
    try:
        judged.Judged.split_into_runs(case)
    except SanityError as error:
        raise PlumblineError(str(error)) from None
    assert all(math.isfinite(run['elapsed']) for run in case.measurements)
    return case.measurements


def of_option(text):
    try:
        return private.references_of(text)
    except SystemExit as error:
        raise PlumblineError(str(error)) from None


def of_modules(path):
    with mock.patch.dict('os.environ', LMOD_CMD='lmod'):
        return of_answer(modules.detect, [])(path)


def prepared(folder):
    with mock.patch.object(results.archive, 'readable', lambda files: (files, [])):
        return results._prepared(folder)


def data(name):
    return pathlib.Path(__file__).with_name('data').joinpath(name).read_text()


PLAN = json.dumps({'id': 'made', 'nodes': {'n1': '8|2|zen4', 'n2': ''}, 'partition': 'made:cpu', 'command': ['reframe'], 'access': [], 'pace': {},
                   'checks': 1, 'limits': {'node_hours': 2.5}})
JOURNAL = ('{"node": "n1", "phase": "submitting", "since": 1.8e9}\n{"node": "n2", "phase": "queued", "job": 7, "since": 1.8e9}\n'
           '{"node": "n1", "phase": "over", "state": "measured", "counts": {"PASS": 3}, "spent": {"6": 60.5}, "since": 1.8e9}\n')
EVENTS = ''.join(json.dumps({'at': 1.8e9, 'node': 'n1', 'event': event, 'sweep': 's', 'hours': 0.5, 'evidence': {'rows': []}, 'again': ['x']}) + '\n'
                 for event in sorted(events.EVENTS))
LOG = 'result|job_completion_time_unix|system|partition|name|perf_var|perf_unit|perf_ref|perf_value\n' + ''.join(
    f'pass|{1800000000 + number}|theirs|batch|Stream|copy|GB/s|12|12.{number}5\n' for number in range(5))
IMB = data('imb/impi_pairs.txt')

RUNS = ''.join(f'plumbline: run 1800000000.{run} 100.{run}\nTriad: {run}.5\n\nplumbline: end of run 1800000002.{run} 102.{run}\n' for run in (1, 5))
MODULES = {'version': 'Lmod 8', 'available': ['gcc/12', 'openmpi/4'], 'loaded': ['gcc/12'], 'compilers': [{'name': 'gnu', 'cc': 'gcc'}],
           'paths': {'gcc': '/x/gcc'}, 'mpicc': None, 'mpi': {}}

#: What can be lost of a text without a word: nothing, all the rest must be as it was; or whole entries, the others must.
ALL, PARTS = 'all', 'parts'

#: What is read -> (parser of a file, the text of such a file, what of it can be lost without a word where that is known).
READ = {
    'records': (of_text(lambda text: records.parse(text).measurements),
                ''.join(json.dumps(made_report.measurement(group=number)) + '\n' for number in range(3)), PARTS),
    'run report': (archive.read, json.dumps({
        'session_info': {'uuid': '1-0', 'time_start_unix': 1.8e9, 'hostname': 'n1', 'version': '4.10', 'cmdline': 'reframe', 'time_elapsed': 2.0},
        'runs': [{'testcases': [made_report.case(plumbline=made_report.result(made_report.metric()))]}]}), None),
    'performance log': (of_folder('theirs/batch/Stream.log', lambda folder: [
        case for report in perflogs.read(folder).reports for case in report['runs'][0]['testcases']]), LOG, PARTS),
    'journal of a sweep': (of_folder('journal.jsonl', lambda folder: [its.told for its in state.load(folder).nodes.values()], sweep__json=PLAN),
                           JOURNAL, None),
    'plan of a sweep': (of_folder('sweep.json', lambda folder: state.load(folder).limits, journal__jsonl=JOURNAL), PLAN, None),
    'journal of nodes': (of_folder('made.jsonl', lambda _: events.read('made')[0]), EVENTS, PARTS),
    'history of nodes': (of_folder('made.jsonl', lambda _: history.read('made', None)), EVENTS, None),
    'last words of a job': (of_folder('job.out', node.last_words), 'plumbline: no\n/x/slurm_script: line 7: 12 Killed   reframe\n', None),
    'duration': (of_text(plan.seconds), '1h30m', None), 'capacity': (of_text(setting.given), 'L2=524288,L3=33554432', None),
    'time': (of_text(schedule.time_of), '02:30', None), 'time limit': (of_text(slurm.seconds), '1-02:03:04', None),
    'size of PBS': (of_text(pbs.size), '131900292kb', None), 'names of nodes': (of_text(sweep_slurm.node_set), 'n[1-4,7],m3,x[01-02]y', None),
    'patterns': (of_text(spatter.parse), '[{"kernel": "Gather", "pattern": "UNIFORM:8:1", "delta": 8, "length": 100}]', None),
    'burn': (of_text(burn.parse, 'the file'), json.dumps(test_burn_series.START) + '\n', None),
    'prediction': (of_text(predict.parse), 'said\n{"predicted": "cg", "cells": []}\n', ALL),
    'topology': (topology_file.read, (CONFIG / 'topologies/example-slurm-cpu.json').read_text(), None),
    'lock of Spack': (of_folder('spack.lock', lambda folder: spack.locked(types.SimpleNamespace(
        name='s', features=['spack'], extras={'spack': {'environment': folder}})), spack__yaml=''), json.dumps({'concrete_specs': {'abc': {
            'name': spack.PACKAGE, 'version': '1', 'arch': {'platform_os': 'o', 'target': {'name': 'zen4'}}, 'parameters': {'mpi': True}}}}), None),
    'cpuinfo': (of_text(processor.of_cpuinfo), 'vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t: 106\nstepping\t: 6\nCPU part\t: 0xd0c\n', None),
    'dmidecode': (of_text(dmi.memory_slots), test_gate.modules(('64 GB', 4800), ('32 GB', 4400)), None),
    'facts of a node': (of_text(lambda said: [one for name, (_, read, _) in facts._GROUPS.items() if name != 'modules' for one in read(Says(said))]),
                        '\n'.join([*test_gate.GOOD.values(), test_gate.COMMANDS['ipmitool'][0]]), None),
    'disassembly': (of_text(codegen.widths_of, 'triad', [('plain', None)]), test_codegen.DISASSEMBLY, None),
    'deaths': (of_text(families()['openmpi'].deaths, None), 'mpirun noticed that process rank 1 with PID 0 on node n exited on signal 11.\n', None),
    'scheduler error': (of_text(submit_errors.in_a_line),
                        "command 'sbatch x' failed with exit code 1:\n--- stderr ---\nsbatch: error: x\n--- stderr ---\n", None),
    'state of a job': (of_answer(job_state.how, types.SimpleNamespace(
        exception=None, is_cancelling=False, jobid='1', sched_access=[], options=[], cli_options=[])),
                       'JobState=FAILED ExitCode=1:0\n', None),
    'sinfo': (of_text(slurm.queues), data('detect/sinfo.txt'), None),
    **{f'{name}, {of}': (of_answer(detect.scheduled, name), text, None) for name, of, text in (
        *(('slurm', of, data(f'detect/{of}.txt')) for of in ('sinfo', 'scontrol')),
        *((name, 'JSON', json.dumps(json.loads(data(f'detect/{name}_{one}.json')) | json.loads(data(f'detect/{name}_{other}.json'))))
          for name, one, other in (('pbs', 'queues', 'nodes'), ('flux', 'resources', 'config'))))},
    'runs of a program': (of_text(of_runs), RUNS, None), 'modules': (of_modules, json.dumps(MODULES), None),
    'switched prefetchers': (of_text(features.unavailable_reason), 'plumbline: the prefetchers cannot be switched: none of them is on\n', None),
    'loopback device': (of_text(loopback.crossed), 'plumbline: loopback bytes 7\nx\nplumbline: loopback bytes 1234567\n', None),
    'subject of IMB': (of_text(subjects.read), 'Allreduce.64.4KiB.shm', None),
    'environment error': (of_text(cause, ['gcc/12']), 'x: line 3: module: command not found\na.c:1: error: no\n\n', None),
    'references of the command line': (of_text(of_option), 'bandwidth.triad:380000,-0.05,none,MB/s;time:3,none,0.1', None),
    'what was notified': (notify._read, json.dumps({'told': {'20261126T093600-1': 1.5e9}, 'wrong': {
        'subsystem memory: rates': {'of': 'speed', 'state': 'FAIL', 'reason': 'why', 'maintainers': ['x']}}}), None),
    'what a node has prepared': (of_folder(results.PREPARED, prepared), json.dumps({'archived': 'system=s/date=2026-11-26/x.parquet', 'found': None,
                                                                                   'why': 'nothing was measured'}), None),
    **{f'cgroup: {name}': (of_folder(name, lambda root: (cgroup.cpu_quota(root), cgroup.memory(root)), **{
        'proc/self/cgroup': '0::/job\n', 'sys/fs/cgroup/job/cpu__max': '150000 100000\n'}), text, None) for name, text in (
        ('proc/self/cgroup', '5:memory,cpu:/job\n0::/job\n'), ('sys/fs/cgroup/job/cpu.max', '150000 100000\n'),
        ('sys/fs/cgroup/job/memory.max', '1073741824\n'))},
    'mounts': (of_text(file_systems.mounts), 'nas:/home /home nfs4 rw 0 0\nfs /odd\\040place beegfs rw 0 0\n', None),
    'topology.conf': (lambda path: locality.by_switch(['n1'], path), 'SwitchName=s1 Nodes=n[1-2]\nSwitchName=core Switches=s[1-2]\n', None),
    **{f'sweep: {name}': (of_answer(lambda name=name, more=more: getattr(sweep_slurm.Slurm(['-p all']), name)(*more)), text, None)
       for name, more, text in (
        ('nodes', (), 'n1|idle|8|2:4:1|gpu,fast|none\nn2|down*|8|2:4:1|(null)|fan\n'), ('jobs', ('made-',), '7|RUNNING|None|made-n1\n'),
        ('reservation', ('x',), 'ReservationName=x StartTime=2026-11-26T10:00:00 EndTime=2026-11-27T10:00:00 Nodes=n[1-4] State=ACTIVE\n'),
        ('others_waiting', (['n1'],), '1000|Resources|x\n'), ('submit', (['sbatch'],), '4711;made\n'),
        ('refuse_hidden_jobs', (), 'PrivateData = jobs\n'))},
    'access options': (lambda path: of_answer(sweep_slurm.Slurm, path.read_text(errors='replace').splitlines())(path), '-p all\n-C "a&b"\n', None),
    **{f'output of {name}': (of_text(parse, **asked), data(f'named/{file}'), ALL) for name, (file, parse, asked) in test_named.READ.items()},
    'output of IMB': (of_text(lambda said: imb.outputs(said, runs=1, sizes=[4, 16, 4], arguments=re.search('IMB-MPI1 (.*)', IMB)[1].split())[0]
                              .tables), IMB, ALL),
    'output of likwid-bench': (of_text(bench_output.parse_bench), data('likwid/bench_triad_2_threads.txt'), ALL),
    'cross-check': (of_text(bench_output.parse_cross_check), test_likwid.log((test_likwid.TRIAD, test_likwid.triad(), 0)), ALL),
    'likwid-perfctr': (of_text(volumes), data('likwid/by_hand_icx_mem.csv'), ALL),
    'groups of LIKWID': (of_text(perfctr.parse_groups), data('likwid/by_hand_groups.txt'), None),
    **{path.name: (load, ''.join(path.read_text().splitlines(keepends=True)[:40]), None) for load, path in (        # whole they take long
        (references.load, CONFIG / 'references/portable.yaml'), (network.load, CONFIG / 'networks/t3e.yaml'),
        (datasheet.load, CONFIG / 'machines/example-epyc-9124.yaml'), (baselines.read, baselines.PATH))},
    'expectations': (files.load, record.text({'kind': 'k', 'recorded': {}, 'of': {'cpu.model': 'x'}, 'not_read': {'dimm': 'why'}, 'expectations': {
        'kernel.release': {'matches': '5[.]', 'severity': 'warn'}, 'memory.total': {'from': 1, 'to': 2.5, 'severity': 'drain'}}}), None),
}

ODD = st.text(max_size=6) | st.sampled_from(['[', '{', '-1', '.inf', 'nan', '1e999', ': ', '\t', '\n', '\0', '²', '|', '!!python/object:x'])


@st.composite
def edited(draw, text):
    '''A text after somebody has edited it, or another version has written it: something else stands at one place, of JSON in place of one
    value; or its lines in any order, and anything between them.'''
    def changed(value):
        keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
        if not keys or draw(st.integers(0, 3)) == 0:
            return draw(JSON | st.sampled_from([10**400, 1e300, '@a:b', 'n[1-2-3-4-5]']))
        key = draw(st.sampled_from(keys))
        return {**value, key: changed(value[key])} if isinstance(value, dict) else [*value[:key], changed(value[key]), *value[key + 1:]]
    lines = text.splitlines(keepends=True)
    at = draw(st.integers(0, len(lines) - 1))
    for before, part, after in (('', text, ''), (''.join(lines[:at]), lines[at], '\n' + ''.join(lines[at + 1:]))):
        with contextlib.suppress(ValueError):
            if isinstance(value := json.loads(part), (dict, list)) and draw(st.integers(0, 3)):
                return before + json.dumps(changed(value)) + after
    if draw(st.booleans()):
        return ''.join(draw(st.lists(st.sampled_from(lines) | ODD, max_size=12)))
    at = draw(st.integers(0, len(text)))
    return text[:at] + draw(ODD) + text[at + draw(st.sampled_from([0, 1, 3, 30])):]


@st.composite
def damaged(draw, text, mixed):
    '''What a program that was killed, a full disk, or several that write at once leave of a text.'''
    lines, at = text.splitlines(keepends=True), draw(st.integers(0, len(text)))
    begin, end = sorted(draw(st.tuples(*[st.integers(0, len(lines))] * 2)))
    return draw(st.sampled_from([text[:at], text[:at] + text[at:].partition('\n')[2], ''.join(lines[:begin] + lines[end:]),
                                 ''.join(lines[:end] + lines[begin:]), *([f'{text[:at]}[n1:7] UCX  WARN no such device\n{text[at:]}'] * mixed)]))


def found_in(name, text, folder):
    '''What is read there, as texts; None if it is refused, in one line.'''
    (folder / 'made').write_bytes(text.encode('utf-8', 'surrogatepass'))
    try:
        found = READ[name][0](folder / 'made')
    except PlumblineError as error:
        assert str(error) and '\n' not in str(error)
        return None
    return [re.sub(r', line=\d+', '', repr(one)) for one in (found if isinstance(found, list) else [found])]


@pytest.mark.slow
@pytest.mark.parametrize('name', READ)
@given(data=st.data())
def test_what_somebody_has_changed_is_read_or_refused_in_one_line(name, data, tmp_path):
    found_in(name, data.draw(edited(READ[name][1]) | st.just('[' * 10**5)), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize('name', [name for name in READ if READ[name][2]])
@settings(max_examples=60)      # a wrong number is worse than a stack trace
@given(data=st.data())
def test_what_is_left_of_a_text_gives_no_other_number(name, data, tmp_path):
    _, text, kind = READ[name]
    whole, found = (found_in(name, one, tmp_path) for one in (text, data.draw(damaged(text, mixed=kind == ALL))))
    assert whole and (found is None or found == whole or (kind == PARTS and set(found) <= set(whole)))


#: What once was a stack trace, a hang, or another number.
ONCE = [('names of nodes', 'n[1-2-3-4-5]'), ('names of nodes', f'n[1-{10**12}]'), ('duration', 400 * '9' + 'h'), ('access options', '-p "all'),
        ('sweep: reservation', 'ReservationName=x State=ACTIVE'), ('journal of a sweep', JOURNAL.replace('60.5', '1e999')),
        ('journal of nodes', EVENTS.replace('0.5', '1e999')), *(('expectations', READ['expectations'][1].replace(*change)) for change in (
            ('5[.]', f'a{{{10**20}}}'), ('2.5', '.nan'))), ('performance log', LOG[:145]), ('performance log', LOG.replace('\npass', '\npapass')),
        ('output of osu_bw', data('named/osu_bw.txt')[:-2]), ('output of hpcg', data('named/hpcg.txt')[:4466]),
        ('likwid-perfctr', 2 * data('likwid/by_hand_icx_mem.csv')), ('flux, JSON', READ['flux, JSON'][1].replace('[10-17]', '[10-18]')),
        ('prediction', predict.PREFIX + '[' * 10**5), ('topology', 5000 * '9'),
        *(('runs of a program', RUNS.replace('102.1', time)) for time in ('1o2.1', 'nan'))]


@pytest.mark.parametrize('name, text', ONCE, ids=[f'{name} {number}' for number, (name, _) in enumerate(ONCE)])
def test_what_was_no_error_once_is_refused(name, text, tmp_path):
    assert not found_in(name, text, tmp_path)


@given(st.text(), st.floats(0, 1e6), st.floats(0, 1))
def test_what_is_written_is_read_again(text, number, cut):
    with tempfile.TemporaryDirectory() as name, mock.patch.object(events, 'FOLDER', folder := pathlib.Path(name)):
        said = [{'at': number, 'node': 'n1', 'event': 'drained', 'reason': text, 'hours': number}] * 2
        events.append('made', said)
        assert events.read('made') == (said, [])
        work = state.create(folder / 'sweep', json.loads(PLAN), '')
        work.begin()
        for phase in (state.SUBMITTING, state.OVER):
            before = {one: vars(its).copy() for one, its in work.nodes.items()}
            work.record(work.nodes['n1'], phase, reason=text, spent={'7': number})
        work._journal.close()
        assert state.load(work.folder).nodes == work.nodes
        journal = work.folder / 'journal.jsonl'
        last = journal.read_bytes().splitlines(keepends=True)[-1]
        journal.write_bytes(journal.read_bytes()[:-len(last)] + last[:int(cut * (len(last) - 1))])     # its writer was killed
        assert {one: vars(its) for one, its in state.load(work.folder).nodes.items()} == before
        content = {'schema': 1, 'kind': 'k', 'recorded': {'node': text}, 'of': {'cpu.model': text}, 'not_read': {'dimm': text}, 'expectations': {
            f'package.{re.sub("[^ -~]", "", text)}x': {'is': text, 'severity': 'warn'}, 'memory.total': {'from': number, 'severity': 'drain'}}}
        record.write(folder / 'k.yaml', content)
        assert files.load(folder / 'k.yaml') == content
        topology_file.write(folder / 't.json', node := {**json.loads(READ['topology'][1]), 'node': text})
        assert topology_file.read(folder / 't.json') == node


# --- text for people ------------------------------------------------------------------------------------------------------

@given(st.text(st.characters() | st.sampled_from('\x1b[]\x07\x9b;m0 '), max_size=40))
def test_nothing_that_a_terminal_obeys_is_left(text):
    seen = shown(text)
    assert not [one for one in seen if (ord(one) < 32 and one not in '\n\t') or 127 <= ord(one) < 160] and shown(seen) == seen


@given(st.text(string.ascii_letters + string.digits, min_size=6), st.sampled_from(['https://{}@host/', '--token {}', 'PASSWORD={} x', '{{"api_key": "{}"}}']))
def test_a_secret_is_masked_once_and_for_all(secret, form):
    text = masked(form.format(f'9{secret}9'))
    assert f'9{secret}9' not in text and masked(text) == text


@given(st.lists(st.text(string.ascii_lowercase, min_size=1, max_size=6), min_size=2, max_size=5))
def test_of_a_path_its_last_part_is_left(parts):
    assert without_paths(f'see /{"/".join(parts)}: 3 GB/s') == f'see {parts[-1]}: 3 GB/s'


@given(st.dictionaries(st.text('ab.', min_size=1, max_size=3), st.text('ab %=', max_size=8).filter(lambda text: not re.search(' %[^ =%]+=', text))))
@example({'share': '50 % of x=1'})
def test_a_name_says_the_values_of_its_parameters(its):
    name = ' %'.join(['Test', *(f'{name}={value}' for name, value in its.items())])
    assert of_display_name(name)[1] == its and as_words(name) == ' '.join(['Test', *its.values()])


@given(st.lists(st.integers(0, 4 * 10**9), min_size=2))
def test_names_of_sessions_say_when_they_began_and_sort_by_it(times):
    names = [f'{stamp_of(at)}-ad190cfc' for at in sorted(times)]
    assert [begun(name).timestamp() for name in names] == sorted(times) and names == sorted(names) and begun(names[0][:15]) is None


@given(st.sets(st.integers(0, 300), min_size=1))
def test_a_list_of_cpus_says_which(cpus):
    ends = [[int(end) for end in part.split('-')] for part in topology.cpu_list(cpus).split(',')]
    assert {cpu for part in ends for cpu in range(part[0], part[-1] + 1)} == cpus


# --- statistics ------------------------------------------------------------------------------------------------------------

@given(SAMPLES, POSITIVE)
def test_a_summary_keeps_its_order_and_has_the_unit_of_its_samples(samples, unit):
    found, scaled = uncertainty.summary(samples), uncertainty.summary(np.array(samples) * unit)
    low, high = found.interval
    assert low <= found.value <= high and (len(samples) == 1 or (min(samples) <= low and high <= max(samples)))
    assert scaled.value == pytest.approx(found.value * unit) and scaled.interval == pytest.approx((low * unit, high * unit))


@given(st.lists(st.floats(1e-6, 10), min_size=1, max_size=20))
def test_no_weight_is_more_than_that_of_the_median(deviations):
    weights = subsystems.weights(deviations)
    assert math.isclose(weights.sum(), 1)
    assert weights[np.array(deviations) <= np.median(deviations)] == pytest.approx(weights.max())


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20), st.floats(0.001, 0.2))
def test_what_is_certain_is_also_listed(chances, rate):
    '''Holm's rate of any false alarm is the stricter one, and neither passes over a smaller chance.'''
    certain, listed = subsystems.holm(chances, rate), subsystems.discoveries(chances, rate)
    assert all(other for one, other in zip(certain, listed) if one)
    for found in (certain, listed):
        assert all(a <= b for a, yes in zip(chances, found) if yes for b, also in zip(chances, found) if not also)


@given(SAMPLES, POSITIVE, st.tuples(st.floats(0.01, 1), st.floats(0.01, 1)))
def test_a_curve_falls_the_sooner_the_more_of_it_must_be_left(values, unit, shares):
    x = list(range(len(values)))
    late, early = (uncertainty.knee(x, values, share) for share in sorted(shares))
    assert late is None or (early is not None and early <= late)
    flat = capacity.isotonic(values)
    assert (np.diff(flat) >= 0).all() and flat.sum() == pytest.approx(sum(values)) and capacity.isotonic(flat) == pytest.approx(flat)
    assert capacity.isotonic(unit * np.array(values)) == pytest.approx(unit * flat)


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.floats(0.1, 10), st.permutations(range(6)), st.floats(0.2, 1))
def test_how_much_of_a_cache_is_ours_depends_on_no_unit_and_no_order(seed, unit, order, share):
    claims = {'L1': 2**15, 'L2': 2**20, 'L3': 2**25}
    x, rng = np.array(capacity.sizes(claims)), np.random.default_rng(seed)
    levels = np.searchsorted([2**15, 2**20, share * 2**25], x)
    latency = np.array([1.3, 5.0, 25.0, 110.0])[levels] * rng.lognormal(0, 0.05, (6, x.size))
    found = {level: its.ours for level, its in capacity.find(x, latency, claims).items()}
    assert 0.7 * share < found['L3'] / 2**25 < 1.45 * share
    for factor, rows in ((1, unit * latency), (1, latency[order]), (2, latency)):
        other = capacity.find(factor * x, rows, {level: factor * claim for level, claim in claims.items()})
        assert {level: its.ours for level, its in other.items()} == pytest.approx({level: factor * ours for level, ours in found.items()}, rel=1e-3)


@given(st.lists(st.floats(-0.2, 0.2), min_size=6, max_size=30), st.floats(1e-3, 1e3), st.randoms(), st.floats(1.001, 1.5))
def test_sessions_have_no_unit_and_a_prediction_has_no_order(logs, unit, random, more):
    values, prior = np.exp(logs), (3, 0.05)
    steps, same = ([changes.step(series, prior), *changes.steps(series, prior, 0.01)] for series in (values, unit * values))
    for one, other in zip(steps, same, strict=True):
        assert (one.change, one.chance) == pytest.approx((other.change, other.chance), rel=1e-3, abs=1e-6) and 0 < one.chance <= 1
    found, other = prediction.predict(values, prior), prediction.predict(unit * np.array(random.sample(list(values), values.size)), prior)
    assert (other.middle, other.deviation, other.freedom) == pytest.approx((unit * found.middle, found.deviation, found.freedom))
    assert found.chance(found.middle / more, registry.MORE) <= 0.5 <= found.chance(found.middle * more, registry.MORE)
    assert found.chance(found.middle * more, registry.NEITHER) == pytest.approx(found.chance(found.middle / more, registry.NEITHER))
    assert found.distance(0.01 / more) >= found.distance(0.01) > 0 and 0 < found.sees(0.01) < 1


@given(st.lists(st.fixed_dictionaries({'threads': st.integers(1, 64), 'elapsed': st.floats(0.1, 100), **dict.fromkeys(
    ('throttled', 'waited', 'waited_most', 'stolen'), st.floats(0, 100))}), min_size=1, max_size=4), st.floats(0, 10))
def test_whose_threads_wait_longer_was_given_less(lost, more):
    given_time = contention.time_given(lost)
    assert 0 <= given_time <= 1 and contention.time_given(lost[::-1]) == pytest.approx(given_time) and min(contention.causes(lost).values()) >= 0
    assert contention.time_given([{**lost[0], 'waited': lost[0]['waited'] + more}, *lost[1:]]) <= given_time + 1e-12
    assert contention.time_given([*lost, {**lost[0], 'waited': None}]) is None


@given(st.integers(0, 2**32 - 1), st.integers(0, 40), st.floats(0.01, 0.4), POSITIVE)
def test_states_are_apart_whatever_the_unit_and_the_order(seed, count, scatter, unit):
    rng = np.random.default_rng(seed)
    values = rng.choice([17e-9, 60e-9, 110e-9, math.nan], count) * rng.lognormal(0, scatter, count)
    labels, centres = clusters(values)
    its = [values[labels == number] for number in range(len(centres))]
    assert labels.min(initial=-1) == -1 == labels.max(where=np.isnan(values), initial=-1) and labels.max(initial=-1) == len(centres) - 1
    assert all(part.min() * (1 - 1e-9) <= centre <= part.max() * (1 + 1e-9) for part, centre in zip(its, centres))
    assert all(GAP * below.max() < above.min() * (1 + 1e-9) for below, above in itertools.pairwise(its))
    order = rng.permutation(count)
    for factor, chosen in ((1, order), (unit, np.arange(count))):
        same, moved = clusters(factor * values[chosen])
        assert same.tolist() == labels[chosen].tolist() and moved == pytest.approx(factor * np.array(centres))


@pytest.mark.parametrize('ruling', [judge, judge_expected])
@settings(max_examples=200)
@given(st.floats(0.3, 3), st.floats(1, 3), st.floats(0, 0.7), st.floats(0, 2), st.booleans())
def test_a_better_value_has_no_worse_verdict(ruling, value, more, half, spread, rises):
    def badness(value):
        found = uncertainty.Summary(value, 9, spread, (value * (1 - half), value * (1 + half)))
        return SEVERITY.index(ruling(found, (1.0, None, 0.2137) if rises else (1.0, -0.2137, None))[0])
    assert badness(value) <= badness(value * more) if rises else badness(value * more) <= badness(value)
