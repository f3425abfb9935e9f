'''The numbers of then: what the report, the benchmark and the documentation say is what the sources' tables say.'''

import csv
import re

import pytest

import rfm
from plumbline.model import sources
from plumbline.report.figures import fileio

PAGE = (rfm.REPOSITORY / 'docs/explanation/then_and_now.rst').read_text()
T3, T5 = 'anderson1997-table3-streams', 'anderson1997-table5-data-motion'

#: A row of the page, how it begins -> the number of then, from the tables.
THEN = {
    'copy past the cache / through it': sources.ratio(T5, 'stride1_copy', 'stride1_copy', 'bypass', 'cached'),
    'fill past the cache / through it': sources.ratio(T5, 'fill', 'fill', 'bypass', 'cached'),
    'load / store': sources.ratio(T3, 'load', 'store', 'streams_on'),
    'load / load and store together': sources.ratio(T3, 'load', 'load_store', 'streams_on'),
    'load, prefetch streams on / off': sources.ratio(T3, 'load', 'load', 'streams_on', 'streams_off'),
    'stride 31: past the cache / through it': sources.ratio(T5, 'stride31_copy', 'stride31_copy', 'bypass', 'cached'),
    'stride 31 / stride 1, through the cache': sources.ratio(T5, 'stride31_copy', 'stride1_copy', 'cached'),
    'stride 31 / stride 1, past the cache': sources.ratio(T5, 'stride31_copy', 'stride1_copy', 'bypass'),
    '1000 random of 100000: gather instruction': sources.ratio(T5, 'random_gather', 'random_gather', 'bypass', 'cached'),
    '1000 random of 100000: prefetch': sources.ratio(T5, 'random_gather', 'random_gather', 'bypass', 'cached'),
    'transpose of 1025: past': sources.ratio('anderson1997-table6-transpose', 'cache_bypass', 'naive', 'mb_per_s'),
    'transpose of 1025: library': sources.ratio('anderson1997-table6-transpose', 'library', 'naive', 'mb_per_s'),
    'sparse MV: past the cache': sources.ratio('anderson1997-table7-spmv', 'cache_bypass', 'naive', 'mflops'),
    'sparse MV, memory: library': sources.ratio('anderson1997-table7-spmv', 'library', 'naive', 'mflops'),
    'FDTD: split by hand / fused, as written': sources.ratio('anderson1997-table4-fdtd', 'manual_split_exey_ez', 'fused', 'mflops'),
    'FDTD: split by hand / fused, with restrict': sources.ratio('anderson1997-table4-fdtd', 'manual_split_exey_ez', 'fused', 'mflops'),
    'FDTD: split by the compiler': sources.ratio('anderson1997-table4-fdtd', 'compiler_split', 'fused', 'mflops'),
    'integral: vectorised / original': sources.value('arsc2002-redundancy', '3', 'speedup'),
    'integral: vectorised / restructured, execution rate': sources.ratio('arsc2002-redundancy', '3', '4', 'mflops'),
    'integral: vectorised / restructured, performance': sources.ratio('arsc2002-redundancy', '4', '3', 'cpu_s'),
    '1 MB file by element: unformatted': sources.ratio('arsc2002-io-modes', 'element', 'element', 'unformatted', 'formatted'),
    '1 MB file: whole formatted': sources.ratio('arsc2002-io-modes', 'array', 'element', 'formatted'),
    '1 MB file: whole unformatted': sources.ratio('arsc2002-io-modes', 'array', 'element', 'unformatted', 'formatted'),
    'latency of a message / of a remote get': sources.ratio('anderson1997-table10-message-latency', 'mpi', 'shmem', 'latency_us'),
}


def rows():
    for table in re.findall(r'\.\. csv-table::\n(?:   :.*\n)+\n((?:   .*\n)+)', PAGE):
        yield from csv.reader(re.sub(r'\n\s+', '\n', f'\n{table}').strip().splitlines(keepends=True), delimiter='|')


def told():
    return {re.sub(r'\s+', ' ', row[0]).strip(): row for row in rows() if len(row) == 6}


@pytest.mark.parametrize('begins', THEN)
def test_the_page_says_what_the_tables_say(begins):
    row, = (row for name, row in told().items() if name.startswith(begins))
    then = row[2].strip()
    digits = len(then.partition('.')[2])
    assert float(then) == pytest.approx(THEN[begins], abs=0.51 * 10**-digits), (begins, THEN[begins])


def test_every_number_of_then_is_of_a_table_that_names_its_source():
    text = {'group': 0, 'bytes': 80, 'seconds': [4.0] * 3, 'options': {'file_bytes': 260}}
    binary = {'group': 0, 'bytes': 80, 'seconds': [1.0] * 3, 'options': {'file_bytes': 160}}
    assert fileio._ratios(binary, text) == ['2.46 (2.46 to 2.46)', '4.00 (4.00 to 4.00)']
    for path in (rfm.REPOSITORY / 'src/plumbline/data/sources').glob('*.csv'):
        first, *_ = path.read_text().splitlines()
        assert first.startswith('# ') and re.search(r'(19|20)\d\d', first) and len(sources.table(path.stem)) >= 2
    # What has no table: a text, a range of a figure, a section.
    numbers = {name for name, row in told().items() if re.fullmatch(r'\d+(\.\d+)?', row[2].strip())}
    assert {name for name in numbers if not any(name.startswith(begins) for begins in THEN)} == {'nine-point kernel, n = 513: padded / as declared'}
