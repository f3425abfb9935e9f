'''Which processor it is: a hypervisor calls several by one name (``AMD EPYC``), and 64-bit Arm has no name at all.'''

import re
from typing import Any

#: A line of ``/proc/cpuinfo``.
_LINE = re.compile(r'^(\S[^:\n]*?)\s*:[ \t]*(.*?)\s*$', re.MULTILINE)


def of_cpuinfo(text: str) -> dict[str, Any]:
    '''What ``/proc/cpuinfo`` tells of its first processor, as in a machine record: ``cpu_model``; ``cpuid`` (x86), ``midr`` (Arm).'''
    told = dict(reversed(_LINE.findall(text)))
    found: dict[str, Any] = {'cpu_model': told['model name']} if told.get('model name') else {}
    numbers = [told.get(key, '') for key in ('cpu family', 'model', 'stepping')]
    if told.get('vendor_id') and all(map(str.isdecimal, numbers)):
        found['cpuid'] = {'vendor': told['vendor_id']} | dict(zip(('family', 'model', 'stepping'), map(int, numbers)))
    if told.get('CPU implementer') and told.get('CPU part'):
        found['midr'] = {'implementer': told['CPU implementer'], 'part': told['CPU part']}
    return found


def name(machine: dict[str, Any]) -> str | None:
    '''The name of a machine record's processor, with its numbers: ``AMD EPYC [AuthenticAMD 25/17]``; None where nothing is known of it.'''
    numbers = [form.format(**machine[key]) for key, form in (('cpuid', '[{vendor} {family}/{model}]'), ('midr', '[{implementer} {part}]'))
               if machine.get(key)]
    return ' '.join(filter(None, [machine.get('cpu_model'), *numbers[:1]])) or None


def same(one: str | None, other: str | None) -> bool:
    '''Whether two names may be those of one processor: what both know is the same; of before there are names without numbers.'''
    return all(a == b for a, b in zip(_parts(one), _parts(other)) if a and b)


def _parts(text: str | None) -> tuple[str, str]:
    model, _, numbers = (text or '').partition('[')
    return model.strip(), numbers
