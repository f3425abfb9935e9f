'''How many lines of a session have which verdict, and what their PASSes can see, in words.'''

from plumbline.analysis.lines import VERDICTS
from plumbline.model import quantity, registry, verdict as judged

#: Verdicts in the order in which a reader is told how many there are.
_TOLD = (judged.PASS, judged.FAIL, judged.UNSTABLE, judged.KNOWN_ISSUE, judged.NO_REFERENCE)


def count(lines):
    '''Question -> verdict -> number of its lines, in the order in which a reader is told; there is no total, which would be read as one verdict.

    What is evidence for no question (``registry.OTHERS``), and known issues, are there only where there are any.
    '''
    found = {question: dict.fromkeys(_TOLD, 0) for question in registry.EVIDENCE}
    for line in lines:
        found[line.question][line.verdict] += 1
    return {question: {ruling: number for ruling, number in its.items() if number or ruling != judged.KNOWN_ISSUE}
            for question, its in found.items() if question != registry.OTHERS or any(its.values())}


def in_words(counts):
    """'24 PASS, 2 FAIL, 1 UNSTABLE, 3 NO REFERENCE', of the counts of one question."""
    return ', '.join(f'{number} {ruling}' for ruling, number in counts.items())


def those(counts):
    """'2 FAIL, 24 PASS': those that there are, the worst first."""
    return in_words({ruling: counts[ruling] for ruling in VERDICTS if counts.get(ruling)})


def power(lines):
    """What the PASSes can see, in one line; '' where there are none."""
    passed = [line for line in lines if line.verdict == 'PASS' and line.metric]
    seen = sorted(line.sees for line in passed if quantity.known(line.sees))
    blind, told = len(passed) - len(seen), []
    if blind:
        told.append(f'{blind} of {len(passed)} PASS say only that the value is possible, and would see no loss')
    if seen:
        told.append(f"half of {'the others' if blind else f'{len(passed)} PASS'} would see a loss of {quantity.percent(seen[len(seen) // 2])}")
    return '; '.join(told)
