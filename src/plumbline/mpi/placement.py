'''Where the ranks of a job over several nodes must have run: pure functions on the machine's record.'''

from plumbline.model.quantity import several


def wrong_nodes(processes, nodes):
    '''The complaint about ranks that are not spread over nodes as asked for, block by block; or :obj:`None`.

    :arg processes: of the machine's record, one for each rank.
    :arg nodes: how many different ones there must be, with as many ranks on each.
    '''
    hosts = [process['host'] for process in processes]
    each = len(hosts) // nodes
    wanted = [host for host in hosts[::each or 1] for _ in range(each)]
    if len(set(hosts)) == nodes and hosts == wanted:
        return None
    found = list(dict.fromkeys(hosts))
    return (f"{len(hosts)} ranks were asked for on {several(nodes, 'node')}, {each} on each, but ran on "
            f"{len(found)}: {', '.join(found[:4])}{', ...' if len(found) > 4 else ''}; rank by rank: {', '.join(hosts[:8])}")


def wrong_cpus(processes, cpus):
    '''The complaint about a rank that had not one CPU of its own, where the scheduler chooses them; or :obj:`None`.

    :arg cpus: where each rank ran at the end.
    '''
    taken: dict[tuple[str, int], int] = {}
    for rank, (process, cpu) in enumerate(zip(processes, cpus, strict=True)):
        if process.get('cpus') != str(cpu):
            return (f"rank {rank} was given the CPUs {process.get('cpus')} of {process['host']}, not one of its own: let the "
                    "scheduler bind each task, or take `binding` out of the partition's extras")
        other = taken.setdefault((process['host'], cpu), rank)
        if other != rank:
            return f"the ranks {other} and {rank} share CPU {cpu} of {process['host']}"
    return None
