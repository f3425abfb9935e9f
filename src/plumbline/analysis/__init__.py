'''What measurements mean, of one session and of many: pure functions of records and of the archive, without presentation.'''
