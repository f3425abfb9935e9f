'''fio: its job file, and its output in JSON.'''

import json

from plumbline.errors import PlumblineError
from plumbline.named import Figure, agree, demand, number

#: Name of a job -> (rw, bytes of a block, blocks in flight).
JOBS = {'write': ('write', 2**20, 8), 'read': ('read', 2**20, 8), 'randread': ('randread', 4096, 32), 'randwrite': ('randwrite', 4096, 32)}


def job_file(size):
    '''The text of a job file: one file in the folder of the variable ``folder``, past the page cache, one job after the other.  It is written
    whole: what is not yet written a file system reads for nothing.  Each other job takes 30 s at most.

    :arg size: bytes of the file.
    '''
    head = f'[global]\ndirectory=${{folder}}\nfilename=data\nsize={size}\nioengine=libaio\ndirect=1\nend_fsync=1\nstonewall\n'
    return head + ''.join(f'[{name}]\nrw={rw}\nbs={block}\niodepth={depth}\n' + 'runtime=30\n' * (name != 'write')
                          for name, (rw, block, depth) in JOBS.items())


def figures(text, source='output of fio', *, size):
    '''Bandwidth of the sequential jobs, operations per second of the random ones.

    :arg text: of ``--output-format=json``.
    :arg size: bytes of the file that was asked for.
    :raises PlumblineError: also where a job had an error, or did other work.
    '''
    try:
        found = json.loads(text[text.index('{'):text.rindex('}') + 1])
        jobs = {job['jobname']: job for job in found['jobs']}
        demand(list(jobs), list(JOBS), 'the list of jobs', source)
        return [figure for name in JOBS for figure in _of_job(jobs[name], name, size, source)]
    except (ValueError, KeyError, TypeError) as error:
        raise PlumblineError(f'{source} is no JSON of fio ({error!r}); was it cut off?') from None


def _of_job(job, name, size, source):
    rw, block, _ = JOBS[name]
    if job['error']:
        raise PlumblineError(f'{source}: {name} ended with error {job["error"]}')
    demand((job['job options']['rw'], int(job['job options']['bs'])), (rw, block), f'what {name} does (rw, bs)', source)
    done = job['write' if 'write' in rw else 'read']
    moved, seconds = done['io_bytes'], number(str(done['runtime'] / 1e3), f'{name}, time', source)
    least = max(0, size - block) if name == 'write' else 0      # it writes whole blocks alone
    if not least < moved <= size or moved != done['total_ios'] * block or done['short_ios']:
        raise PlumblineError(f"{source}: {name} moved {moved} bytes by {done['total_ios']} operations of {block}, {done['short_ios']} of them short, "
                             f'of {size} bytes')
    agree(done['bw_bytes'], moved / seconds, 1e-3, (f'{name}, bytes per second,', 'bytes and time'), source)
    if name.startswith('rand'):
        yield Figure('figure_of_merit', f'{name}_iops', done['total_ios'] / seconds, '1')
    else:
        yield Figure('bandwidth', name, moved / seconds, 'B/s')
