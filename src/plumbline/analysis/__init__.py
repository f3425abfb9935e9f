'''What the archive says beyond one session: domain, no presentation.'''
