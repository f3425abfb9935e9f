'''Sessions and sweeps beside each other: before and after an upgrade, system by system, and what is signed of them.

``sides.py`` loads two and lays them side by side, ``compare.py`` tells what changed between them, ``systems.py`` lays several machines
beside each other, ``acceptance.py`` holds a session against what was promised.
'''
