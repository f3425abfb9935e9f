'''The pages that are read as they are look like it, and the README's example of a new site is a site: it lists and sets up every check.'''

import io
import json
import re
import textwrap

import docutils.core
import docutils.nodes
import pytest

import rfm
from test_configurations import shipped

#: Pages of the site that are read without it as well; tests/test_docs.py has the others.
OF_THE_SITE = ('docs/security.rst', 'docs/tutorials/README.rst')
PAGES = sorted([*rfm.REPOSITORY.glob('*.rst'), *(rfm.REPOSITORY / page for page in OF_THE_SITE),
                *(path for folder in ('reports', 'spack-env', 'src', 'tests') for path in (rfm.REPOSITORY / folder).glob('**/*.rst'))])


@pytest.mark.parametrize('page', PAGES, ids=lambda page: str(page.relative_to(rfm.REPOSITORY)))
def test_pages_are_well_formed_and_their_links_lead_to_files(page):
    '''A table whose columns do not fit, or a paragraph that is cut in two, is shown as an error where the page is read.'''
    complaints = io.StringIO()
    tree = docutils.core.publish_doctree(page.read_text(), settings_overrides={'warning_stream': complaints, 'report_level': 2})
    assert complaints.getvalue() == ''
    links = {node['refuri'] for node in tree.findall(lambda node: 'refuri' in getattr(node, 'attributes', {}))}
    links |= {node['uri'] for node in tree.findall(docutils.nodes.image)}
    assert [link for link in links if ':' not in link and not (page.parent / link).exists()] == []


def test_the_readme_is_short_enough_to_be_read():
    assert len((rfm.REPOSITORY / 'README.rst').read_text().splitlines()) <= 150


@pytest.fixture(scope='module')
def site(tmp_path_factory):
    '''(place, text) of the example, on a canned Slurm, with the topology that a job would have detected.'''
    folder = tmp_path_factory.mktemp('site')
    text = (rfm.REPOSITORY / 'README.rst').read_text()
    block, = re.findall(r'\.\. code-block:: python\n\n((?:    .*\n|\n)+)', text)
    config = folder / 'mycluster.py'
    config.write_text(textwrap.dedent(block))
    place = rfm.Workplace(folder, f"{rfm.GUARDS / 'slurm'}:{rfm.os.environ['PATH']}", config)
    topology = folder / '.reframe/topology/mycluster-cpu/processor.json'
    topology.parent.mkdir(parents=True)
    # What the README tells to do in a job: ReFrame's own detection, without a download.
    place.reframe(f'--detect-host-topology={topology}')
    return place, block


def test_the_example_has_ten_lines_and_a_detected_topology(site):
    topology = site[0].folder / '.reframe/topology/mycluster-cpu/processor.json'
    assert json.loads(topology.read_text())['topology']['cores']
    assert len(site[1].strip().splitlines()) <= 10


def test_every_check_sets_up_on_the_example(site):
    checks = rfm.REPOSITORY / 'checks'
    done = site[0].reframe('--system=mycluster', '--mode=acceptance', '--dry-run', *(f'-n{name}@0' for name in shipped(checks)), checks=checks)
    assert done.code == 0, done.out
    assert 'triad_memory' in done.out and 'skipping' not in done.out
