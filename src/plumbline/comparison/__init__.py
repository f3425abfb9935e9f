'''Sessions and sweeps beside each other: before and after an upgrade, system by system, and what is signed of them.'''
