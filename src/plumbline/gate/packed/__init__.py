'''What the gate carries to a node: the standard library alone, and Python 3.6, the one of RHEL 8.'''
