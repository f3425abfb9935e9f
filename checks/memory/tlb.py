import reframe as rfm

from plumbline.rfm.probe import tlb_probe


@rfm.simple_test
class tlb(tlb_probe):
    '''How many pages do the TLBs of each level hold, what does a miss cost, and which page size is in force, whatever was asked for?'''

    tags = {'screen', 'acceptance'}
