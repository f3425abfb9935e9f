import numpy as np
import reframe as rfm
from reframe.core.builtins import parameter, variable

from plumbline.errors import PlumblineError
from plumbline.model import metrics, tlb as model
from plumbline.model.quantity import size
from plumbline.rfm.check import NativeCheck
from plumbline.rfm.variables import Size
from plumbline.system import topology

#: Numbers of pages to go to: beyond the second level's entries, and of huge pages no more than fill 4 GiB.
MOST_PAGES = {'base': 16384, 'huge': 2048}

#: Below this many pages even the first level's entries may not be seen.
LEAST_PAGES = 256

#: Strides, as parts and multiples of the page.  Several pages may be held as one (16: Arm's contiguous ones), and a huge page in parts.
STRIDES = {'base': (1, 4, 16), 'huge': (1 / 16, 1)}


@rfm.simple_test
class tlb(rfm.RunOnlyRegressionTest, NativeCheck):
    '''How many pages do the TLBs of each level hold, what does a miss cost, and which page size is in force, whatever was asked for?'''

    source = 'byna2003, section 3: the model needs page size and entries; probe after Saavedra and Smith 1995'
    subsystem = 'latency'
    samples = 20
    processes = 1
    program = 'chase'
    threads = 'one'
    tags = {'screen', 'acceptance'}
    pages = parameter(['base', 'huge'], type=str)

    #: Most pages to visit; 0 for what shows the second level, or what the memory allows.
    most_pages = variable(Size, value=0, loggable=False)

    def options(self):
        self.base, huge = model.page_sizes()
        page = self.base if self.pages == 'base' else huge or 0
        if not page:
            self.skip_test('this kernel has no transparent huge pages; see the same with base pages', 'tlb_entries')
        self.page = page
        most = self.most_pages or MOST_PAGES[self.pages]
        if self.memory:
            # What is touched, and what is mapped, which the kernel may refuse beyond all memory.
            most = min(most, int(topology.MEMORY_SHARE * self.memory / self.page), int(self.memory / (max(STRIDES[self.pages]) * self.page)))
        if most < (self.most_pages or LEAST_PAGES):
            reason = f'of {size(self.memory)} no more than {most} pages of {size(self.page)} are touched, so far apart'
            if self.most_pages:
                raise PlumblineError(f'most_pages={self.most_pages}: {reason}: give no more')
            self.skip_test(f'{reason}: too few to see a TLB', 'tlb_entries')
        strides = sorted({int(self.page * part) for part in STRIDES[self.pages]} | {self.base})
        return ['--variants', 'all', '--pages', self.pages, '--size', ','.join(map(str, model.sizes(most))),
                '--stride', ','.join(map(str, strides)), '--threads', 1, '--min-time', '0.001']

    def evaluate(self):
        curves = model.curves(self.measurements)
        share = self.share_of_huge_pages()
        if self.pages == 'huge' and not model.given(share):
            self.skip_test(**model.why_not_given(share), metric='tlb_entries', had=share is not None)
        self.found, levels = model.found(curves)
        text = size(self.page).replace(' ', '')
        last = curves[max(curves)]
        yield metrics.Metric('latency', f'apart.{text}', last.strided[-1] * 1e-3)
        yield from self.of_page(text)
        for level, steps in levels.items():
            yield from self.of_level(level, text, steps)

    def share_of_huge_pages(self):
        '''The smallest share of the records whose nodes lie a page apart.'''
        apart = [record for record in self.measurements if record['options']['stride'] == max(self.page, self.base)]
        wrong = {record['page_size'] for record in apart} - {self.base}
        if wrong:
            raise PlumblineError(f'the node has pages of {min(wrong)} bytes, the one that ReFrame runs on of '
                                 f'{self.base}: run ReFrame on a node of the same kind')
        shares = [record['huge_page_share'] for record in apart if record['variant'] == 'strided']
        return None if None in shares else min(shares)

    def of_page(self, text):
        if self.found['in_force'] is None:
            self.skip_metric(f'page_in_force.{text}', self.found['in_force_reason'])
            return
        yield metrics.Metric('page_in_force', text, np.array([self.found['in_force']]))
        if self.found['in_force'] < self.page:
            self.note(f"pages of {text} were given, but one translation covers {size(self.found['in_force'])}: nested "
                      'paging of a virtual machine splits them')

    def of_level(self, level, text, steps):
        if not steps:
            for metric in (f'tlb_entries.{level}', f'tlb_reach.{level}', f'latency.{level}_miss'):
                self.skip_metric(f'{metric}.{text}', self.found['reasons'][level], symptom='noise')
            return
        known = self.found['levels'][level]
        yield metrics.Metric('tlb_entries', f'{level}.{text}', np.array([float(known['entries'])]))
        if known['reach']:
            yield metrics.Metric('tlb_reach', f'{level}.{text}', np.array([float(known['reach'])]))
        else:
            self.skip_metric(f'tlb_reach.{level}.{text}', self.found['in_force_reason'])
        yield metrics.Metric('latency', f'{level}_miss.{text}', steps[(len(steps) - 1) // 2].samples * 1e-3)
