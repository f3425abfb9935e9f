'''Text of jobs, files and nodes on its way to a terminal, a shell or a page: what it holds is shown, and never obeyed; what only its
writer may know is masked.'''

import re

#: What a terminal obeys: sequences that begin with ESC (colours, titles, clipboard, links), and other control characters.
_SEQUENCES = re.compile(r'\x1b(\[[0-?]*[ -/]*[@-~]|[\]PX^_].*?(\x07|\x1b\\|$)|.?)', re.DOTALL)
_CONTROL = {code: None if code == 13 else '?' for code in (*range(32), *range(127, 160)) if chr(code) not in '\t\n'}

_KEY = r'[\w-]*(?:token|secret|passw(?:or)?d|api_?key|credential)[\w-]*'

#: Who logs in to an address, and the value of a variable or option with such a name.
_LOGIN = re.compile(r'(?<=://)[^/\s@\'"]+(?=@)')
_VALUE = re.compile(rf'(?i)((?:{_KEY}["\']?(?:=|:\s?)|--{_KEY}\s+)["\']?)[^\s&;,\'"]+')


def shown(text: str) -> str:
    '''Text without what a terminal would obey, and masked; line ends and tabs stay.'''
    return masked(_SEQUENCES.sub('', text).translate(_CONTROL))


def masked(text: str) -> str:
    '''Text with ``***`` in place of names and passwords in addresses, and of values of what is called a token, secret, password or key.'''
    return _VALUE.sub(r'\1***', _LOGIN.sub('***', text))
