'''What ReFrame has no public way for: all that we set of its private attributes.  ``tests/test_style.py`` sees to it that no other
module names one, and that ReFrame still gives back what is set here.'''

import functools
import math
import socket
import sys
import time
import warnings
from types import SimpleNamespace

from reframe import VERSION
from reframe.core import config, fields, logging, pipeline, settings, variables
from reframe.core.exceptions import ReframeError
from reframe.core.schedulers import pbs, slurm
from reframe.core.warnings import ReframeDeprecationWarning

#: The versions of ReFrame that all of this is tested with.  Later ones are not locked out: what one has no more is told in one line.
TESTED = '4.10.0 and 4.10.4'


def _lacks(what):
    return f'ReFrame {VERSION} has no {what}, which Plumbline sets; versions known to work are {TESTED}'


def _replace(module, path, made, without=''):
    '''Put what is made of a function of ReFrame's in its place.

    :arg without: what is so without it, which is told where ReFrame has no such function; '' of what nobody misses.
    '''
    *owners, name = path.split('.')
    try:
        owner = functools.reduce(getattr, owners, module)
        setattr(owner, name, made(getattr(owner, name)))
    except AttributeError:
        if without:
            print(f"plumbline: {_lacks(f'{module.__name__}.{path}')}; {without}", file=sys.stderr)


def _demand(its, name):
    '''Refuse to set what ReFrame would never read: a job that failed might pass.'''
    if not hasattr(its, name):
        raise ReframeError(_lacks(f'{type(its).__name__}.{name}'))


def _unless_ignored(warn):
    '''ReFrame looks for the line to warn of, through all modules, twice for each test that it loads, and has switched that warning off.'''
    @functools.wraps(warn)
    def told(*arguments, **options):
        if ('ignore', ReframeDeprecationWarning) not in [rule[:3:2] for rule in warnings.filters[:1]]:
            warn(*arguments, **options)
    return told


for _module in (fields, variables):     # 2.5 s until all our tests are loaded without it, 1.4 s with it
    _replace(_module, 'user_deprecation_warning', _unless_ignored)


def _as_if_run(check_sanity):
    '''ReFrame 4.10.4 asks for the exit code of the job where ``trap_job_errors`` is set: a test that is only compiled has none, and failed
    before if its compiler did.  Suites are full of such tests.'''
    @functools.wraps(check_sanity)
    def checked(test):
        _demand(test, '_job')
        test._job = SimpleNamespace(exitcode=0)
        try:
            check_sanity(test)
        finally:
            test._job = None
    return checked


_replace(pipeline, 'CompileOnlyRegressionTest.check_sanity', _as_if_run, 'tests that are only compiled may fail')


def references_of(text):
    '''``METRIC:REFERENCE,LOWER,UPPER,UNIT``, several with ``;`` between them, as ReFrame has it, for all systems; ``none`` is no bound.'''
    found = {}
    try:
        for part in text.split(';'):
            name, _, leaf = part.partition(':')
            reference, lower, upper, *unit = map(str.strip, leaf.split(','))
            numbers = [None if number == 'none' else float(number) for number in (reference, lower, upper)]
            if not all(number is None or math.isfinite(number) for number in numbers) or numbers[0] is None:
                raise ValueError(part)      # every value is within bounds that are no numbers
            found[name.strip()] = (*numbers, *unit)
    except ValueError:
        # Of its own errors ReFrame makes a warning here, and goes on without the reference.
        sys.exit(f'plumbline: -S reference={text}: write METRIC:REFERENCE,LOWER,UPPER,UNIT, for example bandwidth.triad:380000,-0.05,none,MB/s')
    return {'*': found}


def _taking_text(set_reference):
    '''ReFrame 4.10.4 takes no text for references, which ``-S CHECK.reference=...`` is: it only warns.'''
    @functools.wraps(set_reference)
    def taken(field, test, value):
        text = fields.remove_convertible(value)
        return set_reference(field, test, references_of(text) if isinstance(text, str) else value)
    return taken


_replace(pipeline, '_ReferenceDictField.__set__', _taking_text, '-S CHECK.reference=... has no effect')


def set_nodes(job, nodes):
    '''Say which nodes a job ran on, where ReFrame knows the machine by another name.'''
    _demand(job, '_nodelist')
    job._nodelist = nodes


def set_exit_code(job, code):
    '''Say how a job ended, where ReFrame did not learn it from the scheduler; its own sanity check goes by it.'''
    _demand(job, '_exitcode')
    job._exitcode = code


#: What PBS delivers of a job is there so many seconds after its end.
_DELIVERED = 300


def _without_output(poll):
    '''ReFrame waits for ever for what a job of PBS or Torque wrote, and that of a node that has failed never comes.'''
    @functools.wraps(poll)
    def polled(scheduler, *jobs):
        poll(scheduler, *jobs)
        for job in filter(None, jobs):
            if job.state == 'COMPLETED' and not job.completed:
                _demand(job, '_completed')
                job._completed = time.monotonic() - vars(job).setdefault('plumbline_ended', time.monotonic()) > _DELIVERED
    return polled


_replace(pbs, 'PbsJobScheduler.poll', _without_output, 'a job whose node fails is waited for without an end')


def _preempted(poll):
    '''ReFrame 4.10 takes a job that was preempted for one that will run again, and waits for it; ours do not (``Job.forbid_requeue``).'''
    @functools.wraps(poll)
    def polled(scheduler, *jobs):
        poll(scheduler, *jobs)
        for job in filter(None, jobs):
            if job.state == 'PREEMPTED' and '--no-requeue' in job.options:
                _demand(job, '_state')
                job._state = 'CANCELLED'
    return polled


_replace(slurm, 'SlurmJobScheduler.poll', _preempted, 'a job that is preempted is waited for without an end')


def _without_samples(process):
    '''A log has a record for each metric, and ReFrame puts all attributes of the test into each: our result with all its samples.  It becomes
    what it says of the record's metric; of the others the record says nothing.'''
    @functools.wraps(process)
    def lean(logger, message, options):
        message, options = process(logger, message, options)
        result = options['extra'].get('check_plumbline')
        if result is None:
            return message, options
        extra = {name: value for name, value in options['extra'].items() if name != 'check_plumbline'}
        extra['__rfm_loggable_attrs__'] = sorted({*extra['__rfm_loggable_attrs__']} - {'check_plumbline'})
        if name := extra.get('check_perf_var'):
            extra['check_perfvalues'] = {}
            metric = next((one for one in result.metrics or () if one.name == name), None)
            extra |= {f'check_perf_{key}': getattr(metric, key, None) for key in ('verdict', 'reason', 'spread', 'interval')}
        return message, {**options, 'extra': extra}
    return lean


_replace(logging, 'LoggerAdapter.process', _without_samples, 'its logs hold all samples')


def _refusing_other_hosts(select):
    '''Where no system matches the host ReFrame falls back on a generic one of its own, on which nothing runs, and passes.'''
    @functools.wraps(select)
    def selected(its, name=None, *arguments, **options):
        own = {system['name'] for system in settings.site_configuration['systems']}
        systems = [system['name'] for system in its['systems'] if system['name'] not in own]
        methods = ', '.join(its.get('autodetect_methods'))
        select(its, name, *arguments, **options)
        looks = any(word.startswith('--detect-host-topology') for word in sys.argv)
        if not name and systems and its.subconfig_system in own and not looks:
            sys.exit(f'plumbline: no system of this configuration matches the host {socket.gethostname()}, by autodetect_methods {methods} (it has '
                     f"{', '.join(systems)}): give --system, or fix the system's hostnames")
    return selected


_replace(config, '_SiteConfig.select_subconfig', _refusing_other_hosts, 'a host that no system matches passes, with no test')
