'''PingPong between two processes.'''

from plumbline.model import quantity, states
from plumbline.mpi import pingpong as model
from plumbline.report import drawing
from plumbline.report.figures.common import Table, by_transport, not_drawn, of_places
from plumbline.report.readings import noted, quartiles, rates

SOURCE = 'After hager2007, section 3.2, figures 5 and 6.'
VARIANTS = ('standard', 'swapped', 'touched')


def drawn(curves, height=430):
    '''Bandwidth over the size of the message of each curve (:func:`plumbline.mpi.pingpong.cases`), the empty message left out.'''
    figure = drawing.empty(height)
    shown = {name: {size: quartiles(rates(record)) for size, record in found.items() if size} for name, found in curves.items()}
    drawing.add_points(figure, shown, 'GB/s')
    drawing.log_lengths_and_rates(figure, [rate for found in shown.values() for three in found.values() for rate in three], title='message (bytes)')
    return figure


def pingpong(details):
    '''Bandwidth over the size of the message, and what it tells.'''
    caption = (
        'Bytes of a message over half the round trip; line: median, band: quartiles. Standard sends buffers that no processor '
        'ever touches, as the Intel MPI Benchmarks do; swapped sends back what came, from where it came; touched writes every '
        f'message and reads it. Where standard lies above swapped, a cache was measured. {SOURCE}'
    )
    for at, transport, records in by_transport(details):
        title = f'PingPong, {transport}{at}'
        if not records:
            yield not_drawn(title, 'there are no records')
            continue
        yield title, caption, drawn({variant: model.cases(records, variant) for variant in VARIANTS})
    rows = [row for told in by_transport(list(map(_in_usual_state, details))) for row in _told(*told)]
    if rows:
        header = ('where', 'variant', 'latency', 'falls', 'without end', 'residuals', 'eager to rendezvous', 'faster than swapped')
        yield 'PingPong in figures', (
            'Latency: half the round trip of the empty message. Without end: bandwidth by least squares over the largest '
            'messages, with the largest residual. Falls: where a message has less than 0.8 of the bandwidth of one of half its size. Of a machine '
            'with several states each size is in the usual one, if it met that, and those in different states are not held against each other. '
            f'Eager to rendezvous: where the time per message steps up. {SOURCE}'
        ), Table(header, rows)


def _in_usual_state(detail):
    '''A result whose records have the samples alone by which its metrics are judged first, and their state.'''
    met = states.find(detail.get('records') or [], detail.get('machine'))
    return {**detail, 'records': met.within(met.choices[0])}


def _told(at, transport, records):
    curves = {variant: model.curve(records, variant) for variant in VARIANTS} if records else {}
    for variant, found in curves.items():
        line, step = model.fit(found), model.step(found)
        falls = model.falls(found, model.of_halves(found, model.states_of(model.cases(records, variant))))
        wrong = model.artefacts(found, curves['swapped']) if variant != 'swapped' else {}
        yield (f'{transport}{at}', variant, quantity.amount(quartiles(found[min(found)])[1], 's'),
               ', '.join(f'{ratio:.2f} at {quantity.size(size)}' for size, ratio in falls.items()) or 'nowhere',
               quantity.amount(quantity.per_second(line.bandwidth, 1), 'MB/s'), quantity.percent(line.worst),
               f'{quantity.size(step[0])} to {quantity.size(step[1])}' if step else 'no step',
               f'{quantity.size(min(wrong))} to {quantity.size(max(wrong))}' if wrong else 'nowhere' if variant != 'swapped' else '-')


def pingpong_eager(details):
    '''The same for values of the parameter up to which messages are sent at once.'''
    caption = f'Swapped PingPong in shared memory with the size up to which the MPI sends at once set to each of these values. {SOURCE}'
    yield from of_places(details, 'PingPong over the eager limit', caption, lambda group: _of_each(
        group, 'swapped', lambda detail: next(iter(noted(detail, 'parameter')), 'parameter unknown')), 'there are no records')


def _of_each(details, variant, name):
    '''The curve of each result that has one: one that was skipped, as on a machine of one node, has neither transport nor records.'''
    curves = {name(detail): model.cases(detail.get('records') or [], variant) for detail in details}
    curves = {name: found for name, found in curves.items() if found}
    return drawn(curves) if curves else None


def pingpong_nodes(details):
    '''Bandwidth between two nodes, a curve for each network.'''
    caption = ('Bytes of a message over half the round trip, over the network that the MPI chooses (default) and over TCP; line: median, band: '
               f'quartiles. {SOURCE}')
    yield from of_places(details, 'PingPong between two nodes', caption, lambda group: _of_each(
        group, 'standard', lambda detail: detail.get('transport')), 'there are no records')


FIGURES = {'pingpong': pingpong, 'pingpong_eager': pingpong_eager, 'pingpong_nodes': pingpong_nodes}
