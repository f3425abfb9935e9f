'''The same checks on every node of a partition: one job for each node, in which ReFrame itself runs.

``plan.py`` says what is to be done, ``driver.py`` submits and looks after the jobs, ``slurm.py`` is what it asks the
scheduler, ``state.py`` what it keeps on disk, ``node.py`` the job; ``results.py`` is what the nodes measured, ``findings.py``
what of it goes into the journal of each node, ``proposals.py`` what a site is proposed to do with one, as text.
'''
