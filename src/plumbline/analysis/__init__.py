'''What measurements mean: pure functions of records, without presentation.'''
