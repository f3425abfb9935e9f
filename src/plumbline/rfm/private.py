'''What ReFrame has no public way for: all that we set of its private attributes.  ``tests/test_style.py`` sees to it that no other
module names one, and that ReFrame still gives back what is set here.'''


def set_nodes(job, nodes):
    '''Say which nodes a job ran on, where ReFrame knows the machine by another name.'''
    job._nodelist = nodes


def set_exit_code(job, code):
    '''Say how a job ended, where ReFrame did not learn it from the scheduler; its own sanity check goes by it.'''
    job._exitcode = code
