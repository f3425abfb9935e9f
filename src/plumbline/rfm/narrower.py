'''Code that has become narrower since the references were measured: what such a metric has lost needs not to stand out among hundreds.'''

import numpy as np

from plumbline.model import quantity, registry
from plumbline.model.prediction import LEAST_LOSS, Prediction
from plumbline.system import codegen

#: Where the code has become narrower the suspects are few: how often a test of an unchanged machine may seem slower in a run then.
RATE_OF_NARROWER = 0.01


def widths_of_references(cases):
    '''Variant -> width of its code when its references were measured, of those of which that is known.'''
    return {case.metric.record['variant']: case.reference.simd_width for case in cases
            if case.metric.record and case.reference and case.reference.simd_width}


def lost(case, widths, runs):
    '''What a metric has lost with the width of its code since its references were measured, in each run; '' where nothing shows.

    :arg case: :class:`evaluation.Case` with references of a prediction; :arg widths: variant -> width of its code; :arg runs: :meth:`Case.of_runs`.
    '''
    expected, record = case.reference.expected, case.metric.record
    now, before = widths.get(record['variant']) if record else None, case.reference.simd_width
    if not (now and before and codegen.bits(now) < codegen.bits(before)) or case.is_of_system:
        return ''
    unchanged, better = Prediction(case.leaf[0], expected['deviation'], expected['freedom']), registry.better(case.metric.metric)
    far = -max(unchanged.distance(RATE_OF_NARROWER / len(widths)), np.log1p(LEAST_LOSS))
    if not all(one.value > 0 and better * np.log(one.value / case.leaf[0]) <= far for one in (case.summary, *runs)):
        return ''
    value, reference = quantity.number(case.summary.value), quantity.number(case.leaf[0])
    return f'{value}, where {reference} was the reference: the code is {now} now, and was {before} then'
