'''What a record, a state, a limit and a verdict are: pure functions, which import nothing of the rest of the package but schemas.'''
