'''The documentation's site: it builds without a warning and without a network, what is made from the code is complete, and what the pages
name exists.'''

import html.parser
import json
import re
import shlex
import subprocess
import sys
from urllib.parse import unquote, urldefrag

import pytest
import typer.main

import rfm
from plumbline import cli
from plumbline.model import registry

DOCS = rfm.REPOSITORY / 'docs'
PAGES = sorted(DOCS.rglob('*.rst'))

#: Sphinx in a process that cannot connect to anything.
OFFLINE = '''
import sys

def refuse(event, _):
    if event in ('socket.connect', 'socket.getaddrinfo'):
        raise OSError('there is no network')

sys.addaudithook(refuse)
from sphinx.cmd.build import main
sys.exit(main(sys.argv[1:]))
'''


class Page(html.parser.HTMLParser):
    '''What a page of the site has: ``ids``, ``links`` to others, what it ``loads``, and its ``names`` (the texts set as code).'''

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.loads, self.names, self._code = set(), set(), set(), set(), None
        self.text = path.read_text()
        self.feed(self.text)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.ids |= {attributes['id']} if 'id' in attributes else set()
        if tag == 'a' and 'href' in attributes:
            self.links.add(attributes['href'])
        elif tag in ('link', 'img', 'script') and (what := attributes.get('href' if tag == 'link' else 'src')):
            self.loads.add(what)
        if tag == 'code':
            self._code = ''

    def handle_data(self, data):
        if self._code is not None:
            self._code += data

    def handle_endtag(self, tag):
        if tag == 'code':
            self.names.add(self._code)
            self._code = None


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    '''(Folder, path of each page -> :class:`Page`).'''
    folder = tmp_path_factory.mktemp('docs')
    done = subprocess.run([sys.executable, '-B', '-c', OFFLINE, '-W', '--keep-going', '-n', '-q', '-d', folder / 'doctrees', '-b', 'html',
                           DOCS, folder / 'html'], text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, '')
    return folder / 'html', {path: Page(path) for path in sorted((folder / 'html').rglob('*.html'))}


def names(site, page):
    return site[1][site[0] / page].names


def test_there_is_a_page_for_each_source_metric_check_and_kernel(site):
    rows = [re.findall(r'<span class="pre">(\w+)</span>', row) for row in
            re.findall('<tr.*?</tr>', site[1][site[0] / 'reference/kernels.html'].text.partition('The NAS kernels')[0], re.DOTALL)]
    told = {row[0]: set(row[1:]) for row in rows if row}
    written = {}
    for path in (rfm.REPOSITORY / 'src/kernels').glob('*/*.c'):
        text = path.read_text()
        for name in re.findall(r'\.name = "(\w+)", \.title', text):
            written[name] = set(re.findall(r'PL_(?:WIDEST|WIDEST_AVX|AVX2|IN_FORTRAN)\("(\w+)"', text))
    assert set(told) == set(written) and all(told.values()) and [name for name in written if not written[name] <= told[name]] == []
    assert told['triad'] - written['triad'] == {'plain', 'novec', 'prefetch', 'preload_c', 'openmp'}
    assert {path.parent.name for path in (rfm.REPOSITORY / 'src/kernels').glob('*/CMakeLists.txt')} - set(told) == {'limits'}
    assert {path.relative_to(DOCS).with_suffix('.html') for path in PAGES} <= {path.relative_to(site[0]) for path in site[1]}
    assert set(registry.METRICS) <= names(site, 'reference/metrics.html')
    found = {name: question for path in (rfm.REPOSITORY / 'checks').rglob('*.py')
             for name, question in re.findall(r"@rfm\.simple_test\nclass (\w+)\(.*\):\n    '''([^'?]+)", path.read_text())}
    assert len(found) > 50 and set(found) <= names(site, 'reference/checks.html')
    text = ' '.join(re.sub('<[^>]+>', '', site[1][site[0] / 'reference/checks.html'].text).split())
    assert [name for name, question in found.items() if ' '.join(question.split()[:5]) not in text] == []


def commands(command=None, name='plumbline'):
    command = command or typer.main.get_command(cli.app)
    inner = getattr(command, 'commands', None)
    return [one for part in inner for one in commands(inner[part], f'{name} {part}')] if inner else [(name, command)]


def test_every_command_is_there_with_its_options(site):
    page = site[1][site[0] / 'reference/commands.html']
    words = {word.strip(',') for name in page.names for word in name.split()}
    for name, command in commands():
        assert name.replace(' ', '-') in page.ids
        assert {option for parameter in command.params for option in parameter.opts if option.startswith('-')} <= words


def keys(schema):
    if isinstance(schema, dict):
        yield from schema.get('properties', ())
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from keys(inner)


@pytest.mark.parametrize('path', sorted((rfm.REPOSITORY / 'src/plumbline/schemas').glob('*.json')), ids=lambda path: path.stem)
def test_every_key_of_a_schema_is_there(site, path):
    told = {part.removesuffix('[]') for name in names(site, 'reference/schemas.html') for part in name.split('.')}
    schema = json.loads(path.read_text())
    assert set(keys(schema)) <= told and schema['title'][:20] in site[1][site[0] / 'reference/schemas.html'].text


def test_every_link_leads_somewhere(site):
    '''Within the site, to pages and to places on them; to the examples that the tutorials name, too.'''
    folder, pages = site
    lost = []
    for path, page in pages.items():
        for link in page.links | page.loads:
            target, place = urldefrag(unquote(link))
            if re.match(r'\w+:', target):
                continue
            there = (path.parent / target.partition('?')[0]).resolve() if target else path
            if not there.exists() or (place and place not in getattr(pages.get(there), 'ids', {place})):
                lost.append(f'{path.relative_to(folder)}: {link}')
    assert lost == []
    assert {what for page in site[1].values() for what in page.loads if re.match(r'(\w+:)?//', what)} == set()
    assert [path for path, page in site[1].items() if str(rfm.REPOSITORY) in page.text] == []


# What the pages name ----------------------------------------------------------------------------------------------------------

TOLD = {path: path.read_text() for path in (rfm.REPOSITORY / 'README.rst', *PAGES)}
ALL = '\n'.join(TOLD.values())


def test_pages_are_short_and_no_line_is_wide():
    assert {path.name: text.count('\n') for path, text in TOLD.items() if text.count('\n') > 250} == {}
    assert [f'{path.name}:{n}' for path, text in TOLD.items() for n, line in enumerate(text.splitlines(), 1) if len(line) > 150] == []


def test_commands_options_targets_checks_variables_and_files_exist():
    known = {name.split()[1] for name, _ in commands()}
    assert set(re.findall(r'^ +plumbline ([a-z]+)|``plumbline ([a-z]+)', ALL, re.MULTILINE)) <= {
        pair for name in known for pair in ((name, ''), ('', name))}
    targets = set(re.findall(r'^([a-z]+):', (rfm.REPOSITORY / 'Makefile').read_text(), re.MULTILINE))
    assert set(re.findall(r'(?:^ +|``)make\s([a-z]+)', ALL, re.MULTILINE)) <= targets
    known = {name: {'--help', *(option for one in command.params for option in one.opts)} for name, command in commands()}
    wrong = []
    for block, inline in re.findall(r'^ +(plumbline (?:\\\n|[^\n|])*)|``(plumbline [^`|]*)', ALL, re.MULTILINE):
        words = shlex.split(block or inline, comments=True)
        name = next((name for name in known if words[:name.count(' ') + 1] == name.split()), 'plumbline nodes show')      # the group's own
        wrong += [f'{name}: {word}' for word in words if word.startswith('-') and word.partition('=')[0] not in known[name]]
    assert wrong == []
    code = '\n'.join(path.read_text() for folder in ('checks', 'src/plumbline') for path in (rfm.REPOSITORY / folder).rglob('*.py'))
    named = set(re.findall(r'reframe .* -n ([a-z_]+)', ALL)) | set(re.findall(r'-S ([a-z_]+)\.[a-z_]+', ALL))
    assert len(named) > 5 and [name for name in named if f'class {name}(' not in code] == []
    variables = set(re.findall(r'-S [a-z_]+\.([a-z_]+)=', ALL)) - {'time_limit'}      # ReFrame's own
    assert [name for name in variables if not re.search(rf'\b{name} = (variable|parameter)\(', code)] == []
    # Paths between double backticks that begin at the root of the clone.
    found = set(re.findall(r'``((?:checks|config|docs|spack-env|src|tests)/[\w./-]+)``', ALL))
    missing = {path for path in found if not re.search('NAME|SYSTEM', path) and not (rfm.REPOSITORY / path).exists()}
    # What is made on a machine, and what a site makes.
    assert len(found) > 20 and missing <= {'config/machines/localhost.yaml', 'config/expectations', 'config/references', 'config/topologies'}


def test_make_docs_installs_nothing_and_takes_warnings_for_errors():
    recipe = (rfm.REPOSITORY / 'Makefile').read_text().split('\ndocs:', 1)[1].split('\n\n', 1)[0]
    assert '$(LOOK) $(SETUPFLAGS)' in recipe and '.venv/bin/sphinx-build -W -q -b html docs build/docs' in recipe
