'''What has become of each node: measured, named by sweeps, drained, repaired, returned to service.

``events.py`` is the journal on disk, ``history.py`` what follows from it and from the archive.
'''
