'''Run reports, archives and references from before words changed are read as if they had been written today.'''

#: Keys of a result (``schemas/result.json``), and metrics: what they were called, and what they are called.
KEYS = {'witness': 'cross_check', 'witness_reason': 'cross_check_reason', 'lost': 'contention', 'compiled_to': 'simd_width'}
METRICS = {'of_time': 'cpu_availability', 'of_time.quota': 'cpu_availability.quota'}


def result(payload):
    '''What a check has left in ReFrame's run report, with today's names.'''
    found = {KEYS.get(key, key): value for key, value in payload.items()}
    if isinstance(found.get('metrics'), list):
        found['metrics'] = [{key: METRICS.get(value, value) if key in ('metric', 'name') and isinstance(value, str) else value
                             for key, value in metric.items()} if isinstance(metric, dict) else metric for metric in found['metrics']]
    return found


def rows(frame):
    '''A LazyFrame of the archive with today's names; in JSON a key is what no text can be: quoted, and before a colon.'''
    import polars as pl  # checks that judge by references have no need of it
    old, new = ([f'"{key}": ' for key in keys] for keys in (KEYS, KEYS.values()))
    return frame.with_columns(pl.col('metric', 'name').replace(METRICS), pl.col('detail').str.replace_many(old, new))


def references(node):
    '''The content of a file of references with today's names, whatever the depth that they stand at.'''
    return {METRICS.get(key, key): references(child) for key, child in node.items()} if isinstance(node, dict) else node
