'''IOR, by its summary in JSON, and mdtest, which comes with it.'''

import json

from plumbline.errors import PlumblineError
from plumbline.named import NUMBER, Figure, agree, demand, number, only

#: What mdtest does with files -> subject.
_OF_FILES = {'creation': 'create', 'stat': 'stat', 'read': 'open', 'removal': 'remove'}


def figures(text, source='output of IOR', *, processes, block, transfer):
    '''Bandwidth of writing and reading in a run.

    :arg text: of ``-O summaryFormat=JSON``.
    :arg block, transfer: bytes, as asked for.
    :raises PlumblineError: also where it did other work than was asked for.
    '''
    try:
        found = json.loads(text[text.index('{'):text.rindex('}') + 1])
        entries = {entry['operation']: entry for entry in found['summary']}
        demand(sorted(entries), ['read', 'write'], 'the list of operations', source)
        return [_figure(name, entries[name], (processes, block, transfer), source) for name in ('write', 'read')]
    except (ValueError, KeyError, TypeError) as error:
        raise PlumblineError(f'{source} is no summary of IOR in JSON ({error!r}); was it cut off?') from None


def _figure(name, entry, asked, source):
    demand(tuple(entry[key] for key in ('numTasks', 'blockSize', 'transferSize')), asked, f'what {name} does (tasks, block, transfer)', source)
    moved, mean = asked[0] * asked[1] / 2**20, number(str(entry['bwMeanMIB']), f'{name}, MiB/s', source)
    demand(entry['xsizeMiB'], moved, f'{name}, MiB', source)
    seconds = number(str(entry['MeanTime']), f'{name}, time (a larger block can be measured)', source)
    agree(mean, moved / seconds, 0.6e-4 / seconds + 1e-3, (f'{name}, MiB/s,', 'bytes over the time'), source)
    return Figure('bandwidth', name, mean, 'MiB/s')


def of_files(text, source='output of mdtest', *, processes, files):
    '''Operations per second on files in a run of mdtest.

    :arg files: of each process.
    :raises PlumblineError: also where others were made than were asked for.
    '''
    launched = only(text, r'^mdtest-\S+ was launched with (\d+) total task\(s\) on \d+ node\(s\)$', 'its first line', source)[1]
    demand(int(launched), processes, 'the number of tasks', source)
    counts = only(text, r'^(\d+) tasks, (\d+) files\s*$', 'the number of files', source)
    demand(tuple(map(int, counts.groups())), (processes, processes * files), 'the number of tasks and files', source)
    only(text, r'^-- finished at .*--\s*$', 'the line "-- finished at"', source)
    return [Figure('figure_of_merit', f'{subject}_per_s', _rate(text, name, source), '1') for name, subject in _OF_FILES.items()]


def _rate(text, name, source):
    words = only(text, rf'^ +File {name} +(?:: +)?({NUMBER}(?: +{NUMBER}){{3}})\s*$', f'the row "File {name}" with four numbers', source)[1].split()
    most, least, mean = (number(word, f'File {name}', source) for word in words[:3])
    if not least <= mean <= most:
        raise PlumblineError(f'{source}: File {name}: {least:g} at least, {mean:g} on average, {most:g} at most: the output contradicts itself')
    return mean
