'''Every page in a real browser that is offline: nothing is complained of, and what a reader does works.'''

import csv
import json
import re

import pytest
from typer.testing import CliRunner

import sample_session as sample
from chromium import DESKTOP, PHONE, Chromium
from plumbline import report
from plumbline.cli import app
from plumbline.report import sweep_page
from plumbline.store import archive
from test_history import STEP, fill
from test_ranking import among, findings, numbered, table

HOSTILE = '<img src=x onerror=alert(1)>'

#: The contrast of each text with what lies below it, the least (WCAG 2, success criterion 1.4.3).
CONTRAST = '''(() => {
  const parts = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => { const [x, y, z] = [r, g, b].map(v => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * x + .7152 * y + .0722 * z; };
  const below = element => { const colour = parts(getComputedStyle(element).backgroundColor);
    return colour.length === 3 || colour[3] > 0 ? colour : element.parentElement ? below(element.parentElement) : [255, 255, 255]; };
  const of = element => { const [a, b] = [light(parts(getComputedStyle(element).color)), light(below(element))].sort((a, b) => b - a);
    return [(a + .05) / (b + .05), element.className + " " + element.tagName]; };
  return Array.from(document.querySelectorAll("body, p, small, .v, .tag, th, td, button, a, summary")).filter(e => e.checkVisibility()
    && !e.closest(".plot, .trend, [aria-pressed=false]")).map(of).sort((a, b) => a[0] - b[0])[0]; })()'''
#: Whether the words in an empty search have room: they are written into it, for of a placeholder no browser tells the width.
HINT = '''(() => { const input = document.querySelector(".filter input"); if (!input) return true; input.value = input.placeholder;
  const fits = input.scrollWidth <= input.clientWidth; input.value = ""; return fits; })()'''
SHOWN = 'Array.from(document.querySelectorAll("tbody[data-verdict]")).filter(line => line.checkVisibility()).map(line => line.innerText)'


@pytest.fixture(scope='module')
def chromium(browser, tmp_path_factory):
    opened = Chromium(browser, tmp_path_factory.mktemp('chromium'))
    yield opened
    opened.close()


@pytest.fixture(scope='module')
def pages(tmp_path_factory):
    '''Name -> page: of a session, of many nodes with hostile names and their acceptance, of a history, of an upgrade, of variance, of a sweep.'''
    folder = tmp_path_factory.mktemp('pages')
    found = {'session': report.write(report.Session(sample.sample_session()), folder / 'session')}
    nodes = [sample.case('triad_memory', [sample.metric('bandwidth.plain', 1e4 + number, 'MB/s', 'FAIL' if number < 2 else 'PASS', (1e4, -0.1, None))],
                         host=f'{HOSTILE}{number}' if number < 2 else f'n{number}', detail={'notes': [f'</script>{HOSTILE}']}) for number in range(20)]
    found['nodes'] = report.write(report.Session(sample.frame(*nodes)), folder / 'nodes')
    metrics = [sample.metric(f'of_limit.{HOSTILE}{number}', 0.9, verdict='PASS' if number else 'FAIL') for number in range(100)]
    found['folded'] = report.write(report.Session(sample.frame(sample.case('triad_memory', metrics, detail={}))), folder / 'folded')
    found['sweep'] = sweep_page.write(findings(among(table(numbered(100, 100, 60, 100)), noise=0.001)), folder / 'sweep')
    fill(folder, STEP)
    archive.write(sample.frame(*nodes), folder / 'signed')
    (folder / 'names.yaml').write_text(f'schema: 1\nsite: {HOSTILE}\nmachine: {HOSTILE}\nsupplier: S\nsign: [{{role: for the site, name: A. Nother}}]\n')
    for command, kept, *options in (('history', 'archive'), ('compare', 'archive', '--last', '7'), ('variance', 'archive'),
                                    ('acceptance', 'signed', '--names', str(folder / 'names.yaml'))):
        found[command] = folder / f'{command}.html'
        done = CliRunner().invoke(app, [command, '--archive', str(folder / kept), *options, '--output', str(found[command])])
        assert done.exit_code in (0, 1) and found[command].exists(), done.output
    return found


@pytest.mark.parametrize('width, dark', [(DESKTOP, False), (PHONE, True)], ids=['desktop', 'dark phone'])
@pytest.mark.parametrize('name', ['session', 'nodes', 'folded', 'history', 'compare', 'variance', 'sweep', 'acceptance'])
def test_nothing_is_wrong_with_a_page(chromium, pages, name, width, dark):
    chromium.said.clear()
    chromium.open(pages[name], width, dark)
    contrast, where = chromium.js(CONTRAST)
    assert contrast >= 4.5, where
    chromium.js('document.querySelectorAll("details").forEach(section => section.open = true)')
    chromium.js('Array.from(document.querySelectorAll("button.more")).slice(0, 2).forEach(button => button.click())')
    chromium.drawn()
    assert chromium.js(HINT), 'what the search says before words are typed is cut off'
    assert chromium.js('document.documentElement.scrollWidth') <= width
    assert chromium.said == []


def test_verdicts_are_told_by_words_and_marks_as_well(chromium, pages):
    chromium.open(pages['session'])
    told = chromium.js('Array.from(document.querySelectorAll(".c-verdict .v")).map(one => one.innerText)')
    assert len(set(told)) == 4 and all(re.fullmatch(r'\S [A-Z ]+', one) for one in told)
    chromium.open(pages['acceptance'])
    assert chromium.js('document.querySelectorAll("img").length') == 0
    shown = chromium.js('document.title + document.body.innerText')
    assert f'Acceptance: {HOSTILE}' in shown and f'site\t{HOSTILE}' in shown and f'{HOSTILE}0' in shown
    chromium.open(pages['nodes'])
    assert chromium.js('document.querySelectorAll("img").length') == 0
    line, = (text for text in chromium.js(SHOWN) if 'FAIL' in text)
    assert HOSTILE in line and '2 of 20 nodes' in line


def test_filter_search_and_keyboard(chromium, pages):
    chromium.open(pages['session'])
    every = chromium.js(SHOWN)
    chromium.js('document.querySelector(".filter [data-verdict=PASS]").click()')
    assert 0 < len(passed := chromium.js(SHOWN)) < len(every)
    speed = 'document.querySelector(".filter [data-question=speed]").click()'
    chromium.js(speed)
    assert 0 < len(chromium.js(SHOWN)) < len(passed) and not any('bandwidth.' in text for text in chromium.js(SHOWN))
    chromium.js(speed)
    chromium.key('/')
    chromium.type('novec one')
    assert [text.split('\t')[0] for text in chromium.js(SHOWN)] == ['✔ PASS'] * 2
    assert 'found' in chromium.js('document.querySelector("#figures summary").innerText')
    chromium.key('Escape', 27)
    assert chromium.js('document.querySelector(".filter input").value') == ''
    chromium.js('document.querySelector("button.more").focus()')
    chromium.key('Enter', 13)
    assert chromium.js('document.querySelector("tbody.open").innerText').count('run again') == 1


def test_a_picture_leads_to_its_rows(chromium, pages):
    chromium.open(pages['session'])
    links = 'Array.from(document.querySelectorAll("#overview a"))'
    words = chromium.js(f'{links}.map(link => link.innerText)')
    assert {'limits L2', 'limits memory'} <= set(words)
    for number, word in enumerate(words):
        chromium.js(f'{links}[{number}].click()')
        rows = chromium.js(SHOWN)
        assert rows and all(part.lower() in row.lower() for row in rows for part in word.split()), word
    assert chromium.js('location.hash') == '#verdicts'


def test_lines_that_are_folded_are_found_opened_saved_and_printed(chromium, pages):
    chromium.open(pages['folded'])
    chromium.js('''new Promise(done => { const look = () => document.querySelectorAll("tbody[data-verdict]").length === 100 ? done() : setTimeout(look, 20);
        look(); })''')
    assert len(chromium.js(SHOWN)) == 1 and chromium.js('document.querySelectorAll("img").length') == 0
    chromium.key('/')
    chromium.type('onerror=alert(1)>42')
    assert [f'of_limit.{HOSTILE}42' in text for text in chromium.js(SHOWN)] == [True]
    chromium.js('document.querySelector("tbody:not(.filtered) .more").click(), document.querySelector("tbody.open .download[data-samples]").click()')
    _, text = chromium.saved()
    assert {row['metric'] for row in csv.DictReader(text.splitlines())} == {f'of_limit.{HOSTILE}42'}
    chromium.key('Escape', 27)
    chromium.js('document.querySelector(".filter [data-verdict=PASS]").click()')
    assert len(chromium.js(SHOWN)) == 100


def test_that_no_line_is_shown_is_told_and_why(chromium, pages):
    chromium.open(pages['nodes'])
    nothing = 'Array.from(document.querySelectorAll(".nothing")).filter(one => one.checkVisibility()).map(one => one.innerText).join()'
    chromium.js('document.querySelectorAll(".filter button[aria-pressed=true]").forEach(button => button.click())')
    assert chromium.js(SHOWN) == [] and 'press PASS or NO REFERENCE' in chromium.js(nothing)
    chromium.js('document.querySelectorAll(".filter button[aria-pressed]").forEach(button => button.click())')
    assert chromium.js(SHOWN) and not chromium.js(nothing)
    chromium.key('/')
    chromium.type('n7')         # a node whose values are within bounds, in a line of all such
    assert chromium.js(SHOWN) == [] and 'FAIL and UNSTABLE' in chromium.js(nothing) and 'press' not in chromium.js(nothing)


def test_a_figure_says_what_is_under_the_mouse(chromium, pages):
    chromium.open(pages['session'])
    chromium.js('document.querySelector("#figures").open = true')
    chromium.drawn()
    for _ in range(30):         # figures above it that are drawn just now move it
        x, y = chromium.js('''(() => { const point = document.querySelector("#figures .scatterlayer .point"); point.scrollIntoView({block: "center"});
            const box = point.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()''')
        chromium('Input.dispatchMouseEvent', type='mouseMoved', x=x, y=y)
        said = chromium.js('''new Promise(done => { let looks = 0; const look = () => { const said = document.querySelector(".hoverlayer .hovertext");
            said || ++looks > 50 ? done(said ? said.textContent : "") : setTimeout(look, 20); }; look(); })''')
        if said:
            break
    assert 'GB/s' in said


def test_values_and_samples_are_saved(chromium, pages):
    chromium.open(pages['session'])
    chromium.js('document.querySelector(".filter .download").click()')
    name, text = chromium.saved()
    rows = list(csv.DictReader(text.splitlines()))
    assert name == '20260102T030405Z-sample.csv' and len(rows) == 45
    worst = rows[0]
    assert (worst['verdict'], worst['check'], worst['metric'], worst['unit']) == ('FAIL', 'triad_memory %threads=all', 'bandwidth.plain', 'MB/s')
    assert worst['again'].startswith('reframe') and worst['program'] and 'gcc' in worst['compiler']
    chromium.js('document.querySelector("tbody .download[data-samples]").click()')
    _, text = chromium.saved()
    samples = [float(row['sample']) for row in csv.DictReader(text.splitlines())]
    assert len(samples) == 5 and samples[2] == pytest.approx(float(worst['value']), rel=1e-6)
    chromium.open(pages['nodes'])
    chromium.js('document.querySelector("tbody .download:not([data-samples])").click()')
    _, text = chromium.saved()
    assert [row['node'] for row in csv.DictReader(text.splitlines())] == [f'{HOSTILE}0', f'{HOSTILE}1']
    chromium.open(pages['compare'])
    chromium.js('document.querySelector(".filter .download").click()')
    name, text = chromium.saved()
    rows = list(csv.DictReader(text.splitlines()))
    assert name.endswith('.csv') and len(rows) == chromium.js('document.querySelectorAll("tbody[data-verdict]").length')
    both = next(row for row in rows if row['before'] and row['after'])
    assert both['change'] and both['unit'] and float(both['after over before']) == pytest.approx(float(both['after']) / float(both['before']), rel=1e-5)


def test_on_paper_everything_is_open(chromium, pages, tmp_path):
    chromium.open(pages['session'])
    chromium.js('window.addEventListener("beforeprint", () => { window.printed = document.querySelectorAll("details:not([open])").length; })')
    chromium.print(tmp_path / 'page.pdf')
    assert chromium.js('window.printed') == 0 and chromium.js('document.querySelectorAll("details[open]").length') == 0
    assert len(re.findall(rb'/Type /Page\b', (tmp_path / 'page.pdf').read_bytes())) > 3


def test_the_acceptance_document_has_its_signatures_on_a_page_of_their_own(chromium, pages, tmp_path):
    chromium.open(pages['acceptance'])
    chromium.print(tmp_path / 'whole.pdf')
    chromium.js('document.querySelector(".sign").remove()')
    chromium.print(tmp_path / 'unsigned.pdf')
    whole, unsigned = (len(re.findall(rb'/Type /Page\b', (tmp_path / name).read_bytes())) for name in ('whole.pdf', 'unsigned.pdf'))
    assert whole == unsigned + 1


def test_a_trend_has_its_band_its_levels_and_its_step(chromium, pages):
    chromium.open(pages['history'])
    chromium.js('document.querySelector("#metrics button.more").click()')
    drawn = json.loads(chromium.js('''new Promise(done => { const look = () => { const plot = document.querySelector("#metrics .trend .main-svg");
        plot ? done(JSON.stringify(plot.closest(".trend").data)) : setTimeout(look, 20); }; look(); })'''))
    assert [trace['name'] for trace in drawn] == ['band', 'value', 'level', 'level']
    before, after = (trace['y'][0] for trace in drawn[2:])
    assert len(drawn[1]['y']) == 20 and after / before == pytest.approx(0.9, abs=0.02) and drawn[3]['x'][0] == '2020-01-29 08:00'
