'''The result of a check: what it fills in, and what of it stands in ReFrame's run report (``schemas/result.json``).

What a check has not set is :data:`UNSET`, and left out of the JSON: an entry that is not there and one that is ``null`` differ.  All classes
have slots, so that an attribute which is misspelt is an error where it is written, and where it is read.
'''

import dataclasses
import enum
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, TypeVar

#: The version of the schema of results.
SCHEMA_VERSION = 1

T = TypeVar('T')
P = TypeVar('P', bound='Part')


class Unset(enum.Enum):
    '''The type of :data:`UNSET`.  A member of an enumeration stays the same where ReFrame copies the values of its variables.'''
    UNSET = 'unset'

    def __bool__(self) -> Literal[False]:
        return False


#: What nobody has set.
UNSET: Final = Unset.UNSET


def known(value: T | Unset) -> T | None:
    '''What was set; :obj:`None` where nothing was.'''
    return None if isinstance(value, Unset) else value


def as_given(variables: dict[str, str]) -> str:
    '''What a test was given (:attr:`Result.given`), as people read it.'''
    return ', '.join(f'{name}={text}' for name, text in sorted(variables.items())) or 'what is measured usually'


@dataclass(slots=True)
class Part:
    '''What is an object in the JSON.'''

    #: Attribute -> class of what it lists.
    LISTS: ClassVar[dict[str, type['Part']]] = {}

    def as_json(self) -> dict[str, Any]:
        '''What was set, in the order of the attributes.'''
        values = ((one.name, getattr(self, one.name)) for one in dataclasses.fields(self))
        return {name: [item.as_json() for item in value] if name in self.LISTS else value for name, value in values if value is not UNSET}

    @classmethod
    def of_json(cls: type[P], found: dict[str, Any]) -> P:
        '''What :meth:`as_json` gave, today or before.

        :arg found: it fits the schema, which lets some of the objects have further entries: those are not read.
        '''
        names = {one.name for one in dataclasses.fields(cls)}
        return cls(**{name: [cls.LISTS[name].of_json(item) for item in value] if name in cls.LISTS else value
                      for name, value in found.items() if name in names})


@dataclass(slots=True)
class Process(Part):
    '''How many of a metric's samples a process took.

    :attr process: its number, from 0.
    :attr n: number of samples.
    :attr record: index of the one of the records that they are of; None: of several.
    '''
    process: int
    n: int
    record: int | None


@dataclass(slots=True, kw_only=True)
class OtherState(Part):
    '''A metric in a state of the machine that it is not judged in; attributes as of :class:`Measured`.'''
    LISTS = {'processes': Process}

    state: dict[str, float] | None
    value: float
    n: int
    spread: float | None
    interval: list
    samples: list | Unset = UNSET
    rounds: list[int] | Unset | None = UNSET
    processes: list[Process] | Unset = UNSET


@dataclass(slots=True, kw_only=True)
class Measured(Part):
    '''A metric with its verdict.

    :attr name: metric, a dot, subject; or the metric alone.
    :attr metric: one of the names of :mod:`plumbline.model.registry`.
    :attr subject: what it is about (a variant, a level), or None.
    :attr subsystem: the part of the machine that it tells of, one of :data:`registry.SUBSYSTEMS`.
    :attr value: the median of the samples, in the unit.
    :attr samples: in the order of measuring.
    :attr n: number of samples.
    :attr spread: what the processes differ by, relative; of one alone the robust relative spread of its samples.
    :attr interval: lower and upper end of the 95 % interval of the value.
    :attr reference: what it is judged by and how far below and above it may be, or None.
    :attr reference_from: file of that reference, or None.
    :attr limit: the machine's own limit that applies, MB/s, or None.
    :attr verdict: one of :mod:`plumbline.model.verdict`.
    :attr reason: of the verdict, for people.
    :attr sees: of PASS and UNSTABLE the loss, a fraction, that would have been a FAIL with a probability of 95 %.
    :attr expected: what the reference predicts for a session of an unchanged machine.
    :attr unjudged: why it must not be judged here.
    :attr record: index of the one of the records that the samples are of; None: it has no index.
    :attr processes: who took the samples, where there were several.
    :attr state: of the machine: name -> seconds; None: it changed.
    :attr set_aside: samples in other states, or in none.
    :attr rounds: of each sample the round of its record, where some are set aside; None: of several records.
    :attr states: the same metric in the other states that were met.
    :attr recorded_states: of its references, where it was measured in none of these.
    '''
    LISTS = {'processes': Process, 'states': OtherState}

    name: str
    metric: str
    subject: str | None
    subsystem: str
    value: float
    unit: str
    samples: list | None
    n: int
    spread: float | None
    interval: list | None
    reference: list | None
    reference_from: str | None
    limit: float | None
    verdict: str
    reason: str
    sees: float | Unset = UNSET
    expected: dict[str, Any] | Unset = UNSET
    unjudged: str | Unset = UNSET
    record: int | Unset | None = UNSET
    processes: list[Process] | Unset = UNSET
    state: dict[str, float] | Unset | None = UNSET
    set_aside: int | Unset = UNSET
    rounds: list[int] | Unset | None = UNSET
    states: list[OtherState] | Unset = UNSET
    recorded_states: list[dict[str, float]] | Unset = UNSET


@dataclass(slots=True)
class Skipped(Part):
    '''What could not be measured.

    :attr metric: its name; ``all`` or None: the whole test; or words, where ``parts`` says which metrics they mean.
    :attr reason: why, for people.
    :attr parts: all metrics are meant that have one of them in their names.
    :attr symptom: by which the diagnosis knows it.
    :attr recorded: metrics of the test that was skipped that the system has references of.
    :attr referenced: of a test that was not skipped the names of those that are meant and have references; ``subsystems``: of each its own, None
        of a name that is not in the registry.
    :attr subsystem: of what is meant, where neither the registry nor the check says it: of :data:`registry.STATED`.
    '''
    metric: str | None
    reason: str
    parts: list[str] | Unset = UNSET
    symptom: str | Unset = UNSET
    recorded: int | Unset = UNSET
    referenced: list[str] | Unset = UNSET
    subsystems: list[str | None] | Unset = UNSET
    subsystem: str | Unset = UNSET

    def means(self, name: str) -> bool:
        '''Whether a metric is among it.'''
        return self.metric in (name, 'all', None) or not set(name.split('.')).isdisjoint(self.parts or ())


@dataclass(slots=True)
class Noted(Part):
    '''A note that a table or a figure shows, and what it is about.'''
    about: str
    note: str


@dataclass(slots=True, kw_only=True)
class Result(Part):
    '''What a check leaves; less, if it ended early.

    :attr schema: :data:`SCHEMA_VERSION`.
    :attr question: what it asks.
    :attr source: where the question comes from.
    :attr level: what its metrics are pooled and scored by; None: nothing.
    :attr threads: ``one``, ``all``, or their number as a text.
    :attr ranks: their number, of MPI checks; ``transport``: the way of their messages.
    :attr team: how many threads are all, where no contention record tells.
    :attr given: variable -> text: what the command line, or a mode, gave of what is measured.
    :attr metrics: what was measured, and its verdicts.
    :attr records: the measurement records.
    :attr machine: the machine record, or what of it is known; None: the program prints none.
    :attr contention: the contention records.
    :attr software: ``variables`` and ``modules`` of partition and environment, and ``spack`` where the programs came from there.
    :attr cross_check: the samples of likwid-bench; None: there are none, and ``cross_check_reason`` says why.
    :attr skipped: what could not be measured.
    :attr simd_width: variant -> width of its code; ``simd_width_of_references``: the same when they were measured.
    :attr notes: remarks for the report; ``noted``: those of them that a table or a figure shows.
    :attr other_processors: those that the system's references are of, where they are not of this one.
    :attr series: what was recorded over time, of a check that lasts: points of :func:`plumbline.model.burn.thinned`.
    :attr timed_seconds: the sum of all timed samples; None: nothing was timed.
    :attr failed_for: the verdict of its metrics for which the test was made to fail.
    :attr symptom: of a test that failed: by which the diagnosis knows why.
    :attr inputs: name -> text of the input files of a program that is not ours.
    :attr command: what was run; ``rerun``: the command that runs the test again.
    '''
    LISTS = {'metrics': Measured, 'skipped': Skipped, 'noted': Noted}

    schema: int | Unset = UNSET
    question: str | Unset = UNSET
    source: str | Unset = UNSET
    level: str | Unset | None = UNSET
    threads: str | Unset | None = UNSET
    ranks: int | Unset = UNSET
    team: int | Unset = UNSET
    given: dict[str, str] | Unset = UNSET
    transport: str | Unset | None = UNSET
    metrics: list[Measured] | Unset = UNSET
    records: list[dict] | Unset = UNSET
    machine: dict[str, Any] | Unset | None = UNSET
    contention: list[dict] | Unset = UNSET
    software: dict[str, Any] | Unset = UNSET
    cross_check: Any = UNSET
    cross_check_reason: str | Unset | None = UNSET
    skipped: list[Skipped] | Unset = UNSET
    simd_width: dict[str, str] | Unset = UNSET
    simd_width_of_references: dict[str, str] | Unset = UNSET
    notes: list[str] | Unset = UNSET
    noted: list[Noted] | Unset = UNSET
    series: list[dict] | Unset = UNSET
    other_processors: list[str] | Unset = UNSET
    timed_seconds: float | Unset | None = UNSET
    failed_for: str | Unset = UNSET
    symptom: str | Unset = UNSET
    inputs: dict[str, str] | Unset = UNSET
    command: str | Unset | None = UNSET
    rerun: str | Unset | None = UNSET

    @property
    def of_machine(self) -> dict[str, Any]:
        '''The machine record; empty where there is none.'''
        return self.machine or {}

    def skip(self, skipped: Skipped) -> None:
        '''Say that something could not be measured.'''
        self.skipped = [*(self.skipped or ()), skipped]

    def note(self, text: str, about: str | None = None) -> None:
        '''Say something once.

        :arg about: by what a table or a figure that shows it finds it.
        '''
        if text not in (self.notes or ()):
            self.notes = [*(self.notes or ()), text]
        if about and Noted(about, text) not in (self.noted or ()):
            self.noted = [*(self.noted or ()), Noted(about, text)]

    def notes_about(self, about: str) -> list[str]:
        '''The notes that are about something.'''
        return [one.note for one in self.noted or () if one.about == about]

    def __rfm_json_encode__(self) -> dict[str, Any]:
        '''How ReFrame writes it: into its run report, its logs and its database.'''
        return self.as_json()
