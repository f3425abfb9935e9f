'''The gate: is this node as a node of its kind must be?  Expectations, recorded from a good node, and a file that holds them against a node.

What runs on a node is in :mod:`plumbline.gate.packed`: the standard library alone and Python 3.6, since it runs where nothing of ours is.
'''
