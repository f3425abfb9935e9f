'''Directives whose content is made from the code when the site is built, so that it says what the code says.

``plumbline-checks``, ``plumbline-kernels``, ``plumbline-metrics``, ``plumbline-commands``, ``plumbline-targets``, ``plumbline-schemas`` and
``plumbline-causes``; none has arguments.
'''

import ast
import inspect
import json
import re
import shutil
from pathlib import Path

import typer.main
from sphinx.util.docutils import SphinxDirective

from plumbline import cli
from plumbline.analysis import diagnosis
from plumbline.model import registry

ROOT = Path(__file__).resolve().parents[2]


def escaped(text):
    '''Text that is no markup, but for what stands between single backticks.'''
    parts = re.split(r'`+([^`]+)`+', text)
    return ''.join(f'``{part}``' if i % 2 else re.sub(r'([\\*|_])', r'\\\1', part) for i, part in enumerate(parts))


def literal(text):
    return f'``{text}``' if text else ''


def table(head, rows, widths):
    '''Lines of a table; cells are markup of one line.'''
    lines = ['.. list-table::', '   :header-rows: 1', f"   :widths: {' '.join(map(str, widths))}", '']
    for row in (head, *rows):
        row = [re.sub(r'^([-*+]|\d+[.)])(?=\s|$)', r'\\\1', cell) for cell in row]      # no list
        lines += [f"   {'*' if first else ' '} - {' '.join(cell.split())}".rstrip() for first, cell in zip([True] + [False] * len(row), row)]
    return [*lines, '']


def section(title, mark):
    return [title, mark * len(title), '']


class Generated(SphinxDirective):
    '''The lines of ``lines()``, and ``sources``: the files that they are made from.'''

    sources = ()

    def run(self):
        for path in self.sources:
            self.env.note_dependency(str(path))
        return self.parse_text_to_nodes('\n'.join(self.lines()), allow_section_headings=True)


# Checks -----------------------------------------------------------------------------------------------------------------------

def names(node):
    '''Texts of a set, list or tuple of the source: (those that always are in it, those that sometimes are).'''
    always = {one.value for one in getattr(node, 'elts', ()) if isinstance(one, ast.Constant)}
    texts = {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}
    sometimes = set()
    for one in getattr(node, 'elts', ()):
        if isinstance(one, ast.Starred):
            value = one.value.body if isinstance(one.value, ast.IfExp) else one.value
            sometimes |= {part.value for part in ast.walk(value) if isinstance(part, ast.Constant)}
    return always, sometimes & texts


def classes():
    '''Name -> (file, class statement) of all classes of the checks, and of what they are derived from.'''
    found = {}
    for path in [*sorted((ROOT / 'src/plumbline').rglob('*.py')), *sorted((ROOT / 'checks').rglob('*.py'))]:
        for node in ast.parse(path.read_text(encoding='utf-8')).body:
            if isinstance(node, ast.ClassDef):
                found[node.name] = path, node
    return found


def line_of(found, name):
    '''A class and those that it is derived from, as Python looks through them.'''
    if name in found:
        yield found[name][1]
        for base in found[name][1].bases:
            if isinstance(base, ast.Name):
                yield from line_of(found, base.id)


def inherited(found, name, attribute):
    '''The value of a class's attribute, as the source has it.'''
    for node in line_of(found, name):
        for statement in node.body:
            if isinstance(statement, ast.Assign) and [target.id for target in statement.targets if isinstance(target, ast.Name)] == [attribute]:
                return statement.value
    return None


def tags(found, name):
    '''(Tags of all variants of a check, tags of some.)'''
    always, sometimes = names(inherited(found, name, 'tags') or ast.Set([]))
    for method in (one for node in line_of(found, name) for one in node.body if isinstance(one, ast.FunctionDef)):
        for statement in ast.walk(method):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, 'target', None)
            if not (isinstance(target, ast.Attribute) and target.attr == 'tags'):
                continue
            certain, others = names(statement.value)
            (always if statement in method.body else sometimes).update(certain)
            sometimes |= others
    return sorted(always), sorted(sometimes - always)


def checks():
    '''Folder -> [(name, tags of all variants, tags of some, question, source)] of every check.'''
    found = classes()
    tests = {}
    for name, (path, node) in found.items():
        if any(ast.unparse(one).endswith('simple_test') for one in node.decorator_list):
            source = inherited(found, name, 'source')
            folder = path.relative_to(ROOT / 'checks').parts[0]
            tests.setdefault(folder, []).append((name, *tags(found, name), ast.get_docstring(node) or '',
                                                 source.value if isinstance(source, ast.Constant) else ''))
    return tests


class Checks(Generated):
    @property
    def sources(self):
        return sorted((ROOT / 'checks').rglob('*.py'))

    def lines(self):
        for folder, tests in sorted(checks().items()):
            yield from section(f'checks/{folder}', '-')
            yield from table(('check', 'question', 'tags', 'source'), [
                (literal(name), question, ', '.join([*always, *(f'({tag})' for tag in some)]), source)
                for name, always, some, question, source in sorted(tests)], (19, 45, 14, 22))


# Kernels ----------------------------------------------------------------------------------------------------------------------

def kernels():
    '''Name -> (title, variants, those that run by name only), as the C sources have them.'''
    found = {}
    for path in Kernels.sources:
        for name, title, array in re.findall(r'\.name = "(\w+)", \.title = "([^"]*)",\s*\.variants = (\w+)', text := path.read_text('utf-8')):
            source = text if array == 'variants' else path.with_name('variants.c').read_text(encoding='utf-8')
            entries = re.search(rf'pl_variant {array}\[\] = {{\n(.*?)\n}};', source, re.DOTALL)[1]
            variants = re.findall(r'^    (?:\[\w+\] = )?(?:{|PL_\w+\()"(\w+)"(.*)', entries, re.MULTILINE)
            found[name] = title, list(dict.fromkeys(one for one, _ in variants)), {one for one, rest in variants if '.by_name' in rest}
    return found


class Kernels(Generated):
    sources = sorted((ROOT / 'src/kernels').glob('*/*.c'))

    def lines(self):
        return table(('kernel', 'what', 'variants'), [
            (literal(name), escaped(title), ', '.join(literal(one) + ' (by name only)' * (one in by_name) for one in variants))
            for name, (title, variants, by_name) in kernels().items()], (14, 36, 50))


# Metrics ----------------------------------------------------------------------------------------------------------------------

class Metrics(Generated):
    sources = [registry.__file__]
    WORDS = {registry.MORE: 'more', registry.LESS: 'less', registry.NEITHER: 'neither'}

    def lines(self):
        rows = [(literal(name), entry.unit, self.WORDS[entry.better], f'{entry.upper:g}' if entry.upper else '', entry.noise,
                 entry.subsystem or '', entry.text) for name, entry in registry.METRICS.items()]
        return table(('metric', 'unit', 'better', 'at most', 'scatters as', 'subsystem', 'what it says'), rows, (20, 8, 7, 7, 10, 12, 36))


# Commands ---------------------------------------------------------------------------------------------------------------------

def commands(command=None, name='plumbline'):
    '''(Name, command) of every command of the command line, groups of commands before theirs.'''
    command = command or typer.main.get_command(cli.app)
    yield name, command
    for part, inner in getattr(command, 'commands', {}).items():
        yield from commands(inner, f'{name} {part}')


class Commands(Generated):
    sources = sorted((ROOT / 'src/plumbline/cli').glob('*.py'))

    def lines(self):
        for name, command in commands():
            if hasattr(command, 'commands'):
                continue
            context = typer.Context(command, info_name=name)
            yield from section(name, '-')
            yield from [f"``{' '.join([name, *command.collect_usage_pieces(context)])}``", '']
            yield from [*escaped(inspect.cleandoc(command.help or '')).splitlines(), '']
            rows = [self.row(parameter.get_help_record(context)) for parameter in command.params]
            if rows:
                yield from table(('argument or option', 'what it is', 'default'), rows, (32, 48, 20))

    @staticmethod
    def row(record):
        '''Typer appends the default to the help; a path of it is told from the clone on.'''
        name, text = record
        text, default = re.fullmatch(r'(.*?)(?:\s*\[((?:default: |required|x[<>]=|[0-9]+<=x)[^\]]*)\])?', text.strip(), re.DOTALL).groups()
        default = re.sub(r'x>=(\d+)', r'at least \1', (default or '').replace(f'{ROOT}/', '').replace('default: ', ''))
        return literal(name), escaped(text), escaped(default)


class Targets(Generated):
    sources = [ROOT / 'Makefile']

    def lines(self):
        found = re.findall(r'^([a-z]+):[^#\n]*## +(.*)', (ROOT / 'Makefile').read_text(encoding='utf-8'), re.MULTILINE)
        return table(('target', 'what it does'), [(literal(f'make {name}'), escaped(text)) for name, text in found], (20, 80))


# Schemas ----------------------------------------------------------------------------------------------------------------------

def schemas():
    '''Name -> schema.'''
    return {path.stem: json.loads(path.read_text(encoding='utf-8')) for path in sorted((ROOT / 'src/plumbline/schemas').glob('*.json'))}


def has_keys(schema):
    '''Whether a schema has keys of its own, at once or on a condition.'''
    parts = [schema[key] for key in ('then', 'else') if key in schema] + schema.get('allOf', [])
    return 'properties' in schema or isinstance(schema.get('additionalProperties'), dict) or any(map(has_keys, parts))


class Keys:
    '''The keys of a schema, as rows: path, type, description.'''

    def __init__(self, schema):
        self.definitions = schema.get('$defs', {})
        self.told = {key for key, one in schema.get('properties', {}).items() if one is not True}

    def referred(self, schema):
        '''(Name of the definition that is referred to, the schema with what that says.)'''
        file, _, path = schema.get('$ref', '').partition('#')
        name = '' if file else path.rpartition('/')[2]
        return name, {**self.definitions.get(name, {}), **schema}

    def type(self, schema):
        name, schema = self.referred(schema)
        if name and has_keys(self.definitions[name]):
            return f'*{name}*'
        if '$ref' in schema and not name:
            return f"as in {schema['$ref'].partition('#')[0]}"
        if 'const' in schema:
            return literal(json.dumps(schema['const']))
        if 'enum' in schema:
            return ', '.join(literal(json.dumps(one)) for one in schema['enum'])
        if 'oneOf' in schema:
            return ' or '.join(self.type(one) for one in schema['oneOf'])
        kinds = schema.get('type', [])
        kinds = [kinds] if isinstance(kinds, str) else list(kinds)
        if 'array' in kinds and isinstance(schema.get('items'), dict):
            inner = self.type(schema['items'])
            kinds[kinds.index('array')] = f'array of {inner}' if inner else 'array'
        text = ' or '.join(kinds) or (f'*{name}*' if name else '')
        limits = [f'{word} {schema[key]:g}' for key, word in (
            ('minimum', 'from'), ('exclusiveMinimum', 'above'), ('maximum', 'to'), ('exclusiveMaximum', 'below')) if key in schema]
        limits += [f'{schema[key]} {word}' for key, word in (('minItems', 'at least'), ('maxItems', 'at most')) if key in schema]
        return f"{text}, {', '.join(limits)}" if limits else text

    def description(self, schema):
        return schema.get('description') or schema.get('items', {}).get('description', '')

    def rows(self, schema, path=''):
        '''Those of a schema and of all below it that has no name of its own.'''
        required = schema.get('required', ())
        inner = dict(schema.get('properties', {}))
        if isinstance(schema.get('additionalProperties'), dict):
            inner['NAME'] = schema['additionalProperties']
        for key, below in inner.items():
            if below is True and key not in self.told:
                yield literal(path + key), 'any', '', ''
            if below is True or not below:      # told elsewhere
                continue
            name, whole = self.referred(below)
            yield literal(path + key), self.type(below), 'yes' if key in required else '', escaped(self.description(whole))
            if name and has_keys(self.definitions[name]):
                continue
            yield from self.rows(below, f'{path}{key}.')
            if 'properties' in (items := whole.get('items', {})):
                yield from self.others(items, f'{path}{key}[].')
                yield from self.rows(items, f'{path}{key}[].')
        for one in [*schema.get('allOf', ()), *([schema] if 'if' in schema else [])]:
            yield from self.branch(one, path)

    def others(self, schema, path):
        '''That the keys of a definition are among those of a schema.'''
        name = self.referred(schema)[0]
        if name and has_keys(self.definitions[name]):
            yield literal(f'{path}...'), f'*{name}*', '', f'the keys of *{name}*'

    def branch(self, schema, path):
        '''What holds where a key has a certain value.'''
        asked, told = schema['if'].get('properties', {}), []
        for key, one in asked.items():
            if 'const' in one:
                told.append(f'{key} is {json.dumps(one["const"])}')
            else:
                told.append(f'there is {key}')
                yield literal(path + key), self.type(one), '', ''
        for part, when in (('then', f"where {escaped(' and '.join(told))}" if told else ''), ('else', 'otherwise' if told else '')):
            for *row, text in (*self.others(schema.get(part, {}), path), *self.rows(schema.get(part, {}), path)):
                yield *row, ': '.join(filter(None, (when, text)))


class Schemas(Generated):
    sources = sorted((ROOT / 'src/plumbline/schemas').glob('*.json'))
    HEAD, WIDTHS = ('key', 'type', 'required', 'description'), (28, 26, 8, 38)

    def lines(self):
        for name, schema in schemas().items():
            keys = Keys(schema)
            yield from section(f'{name}.json', '-')
            yield from [f"{escaped(schema['title'])}.", '']
            if rows := list(keys.rows(schema)):
                yield from table(self.HEAD, rows, self.WIDTHS)
            for defined, inner in keys.definitions.items():
                rows = list(keys.rows(inner))
                if rows:
                    yield from [f"*{defined}*{': ' + escaped(inner['description']) if 'description' in inner else ''}", '']
                    yield from table(self.HEAD, rows, self.WIDTHS)


# Causes -----------------------------------------------------------------------------------------------------------------------

class Causes(Generated):
    sources = [diagnosis.RULES]

    def lines(self):
        rows = [(literal(rule['name']), escaped(rule['says']), escaped(rule['because']), rule['confidence'], escaped(rule['source']))
                for rule in diagnosis.rules()]
        return table(('rule', 'what the report says', 'why', 'confidence', 'source'), rows, (16, 26, 32, 8, 18))


def copy_examples(app, error):
    '''The files that the tutorial names stand beside its page.'''
    if not error and app.builder.format == 'html':
        for folder in (path for path in Path(app.srcdir, 'tutorials').iterdir() if path.is_dir()):
            shutil.copytree(folder, Path(app.outdir, 'tutorials', folder.name), dirs_exist_ok=True,
                            ignore=shutil.ignore_patterns('__pycache__', 'build'))


def setup(app):
    for name, directive in (('checks', Checks), ('kernels', Kernels), ('metrics', Metrics), ('commands', Commands), ('targets', Targets),
                            ('schemas', Schemas), ('causes', Causes)):
        app.add_directive(f'plumbline-{name}', directive)
    app.connect('build-finished', copy_examples)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
