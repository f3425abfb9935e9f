'''Spaces and indentation of C are those of clang-format, line breaks are ours: ``c_layout.py FILE...`` sets the ones and keeps the others.

No setting of clang-format keeps line breaks: ``ColumnLimit: 0`` puts each enumerator and each named member of a table on a line of its own.
So a statement is taken from it as a whole, where its lines begin and end there as they do here, and otherwise left as it is written.'''

import re
import subprocess
import sys
import tempfile
from pathlib import Path

STYLE = Path(__file__).resolve().parent.parent / '.clang-format'
#: Definitions in which ``a * b`` is a pointer for it, and entries of tables without a comma.
_NOT_UNDERSTOOD = re.compile(r'#define .*[^\\]$| +PL_[A-Z0-9_]+\(.*\)$')


def _spans(text):
    '''(characters before the line, and up to its end, spaces not counted), line.'''
    at = 0
    for line in text.splitlines():
        yield (at, at := at + len(''.join(line.removesuffix('\\').split()))), line


def _statements(text):
    '''Lists of spans and lines: of a statement, a comment, a definition or a condition of the preprocessor.'''
    statement, before = [], ''
    for span, line in _spans(text):
        statement.append((span, line))
        of_preprocessor = before.endswith('\\') or (line.startswith('#') and len(statement) == 1)
        if not line or line.endswith((';', '{', '}', '*/')) or (of_preprocessor and not line.endswith('\\')):
            yield statement
            statement = []
        before = line
    yield statement


def settled(text, formatted):
    '''The text with the spaces that clang-format puts into those statements whose lines it keeps.'''
    there, lines = dict(_spans(formatted)), []
    for statement in _statements(text):
        kept = all(span in there and not _NOT_UNDERSTOOD.match(line) for span, line in statement)
        lines += [there[span] if kept and line else line for span, line in statement]
    return '\n'.join(lines) + '\n'


def changes(paths):
    '''Path -> its text as it should be, of those where that is not what stands there.'''
    with tempfile.TemporaryDirectory() as folder:
        copies = {path: Path(folder) / f'{number}{Path(path).suffix}' for number, path in enumerate(paths)}
        texts = {path: Path(path).read_text() for path in paths}
        for path, copy in copies.items():
            copy.write_text(texts[path])
        subprocess.run([Path(sys.executable).with_name('clang-format'), f'--style=file:{STYLE}', '-i', *copies.values()], check=True)
        right = {path: settled(texts[path], copies[path].read_text()) for path in paths}
    return {path: text for path, text in right.items() if text != texts[path]}


if __name__ == '__main__':
    found = changes(sys.argv[1:])
    for path, text in found.items():
        Path(path).write_text(text)
        print('laid out anew:', path)
    sys.exit(bool(found))
