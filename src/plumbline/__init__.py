'''Acceptance and health checks for HPC systems, on ReFrame; ``README.rst`` tells what is where.'''
