'''Sensitivity to latency that is added.'''

from plumbline.mpi import sensitivity
from plumbline.report import drawing
from plumbline.report.figures.common import each_place
from plumbline.report.readings import grouped, quartiles

SOURCE = 'After anderson1997, section 5.3, tables 12 and 13.'


@each_place('Latency added')
def latency_sensitivity(at, group):
    '''Time over latency, and its share in communication, of each application.'''
    studies = {}
    for detail in group:
        for (application, variant), records in grouped(detail.get('records') or [], lambda record: (record['kernel'], record['variant'])):
            study, = sensitivity.studies(records).values()
            studies[f"{application}, {variant}, {records[0]['ranks']} ranks"] = study
    if studies:
        slower = {name: {latency: quartiles(sensitivity.slowdown(study, latency)) for latency in study if latency} for name, study in studies.items()}
        yield f'Latency added{at}: time', (
            'Time with the latency added to every message over time without, paired by rounds; line: median, band: quartiles. '
            f'Added by libplumbline_latency. {SOURCE}'
        ), _over_latency(slower, 'time / time without', '')
        shares = {name: {latency: quartiles(100 * sensitivity.share_of_communication(record)) for latency, record in study.items()}
                  for name, study in studies.items()}
        yield f'Latency added{at}: communication', (
            f'Share of the time that the ranks spend in communication, waiting included; mean over the ranks. {SOURCE}'
        ), _over_latency(shares, 'time in communication (%)', '%')


def _over_latency(curves, title, unit):
    figure = drawing.empty(360)
    drawing.add_points(figure, curves, unit)
    figure.update_xaxes(title='latency added (us)')
    figure.update_yaxes(title=title, rangemode='tozero')
    return figure


FIGURES = {'latency_sensitivity': latency_sensitivity}
