'''Text of jobs, files and nodes on its way to a terminal or a shell: what it holds is shown, and never obeyed.'''

import re

#: What a terminal obeys: sequences that begin with ESC (colours, titles, clipboard, links), and other control characters.
_SEQUENCES = re.compile(r'\x1b(\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(\x07|\x1b\\|$)|.?)', re.DOTALL)
_CONTROL = {code: None if code == 13 else '?' for code in (*range(32), *range(127, 160)) if chr(code) not in '\t\n'}


def shown(text):
    '''Text without what a terminal would obey; line ends and tabs stay.'''
    return _SEQUENCES.sub('', text).translate(_CONTROL)
