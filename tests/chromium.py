'''Chromium, driven by its DevTools protocol over a pipe: no port, no library.'''

import base64
import json
import os
import re
import subprocess

#: What each page is looked at as: a window's width, dark or light.
DESKTOP, PHONE = 1280, 390


class Chromium:
    '''A browser with one page that is offline, and all that the page complains of.

    :arg program: its path; :arg folder: for its profile and what it downloads.
    '''

    def __init__(self, program, folder):
        (theirs, ours), (read, write) = os.pipe(), os.pipe()
        self.folder, self.said, self._number = folder, [], 0
        options = ['--headless', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--no-first-run', '--remote-debugging-pipe',
                   f'--user-data-dir={folder}/profile', 'about:blank']
        # It reads from 3 and writes to 4.
        self._process = subprocess.Popen(['bash', '-c', f'exec "$0" "$@" 3<&{theirs} 4>&{write}', program, *options], pass_fds=(theirs, write),
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(theirs), os.close(write)
        self._to, self._from, self._rest = os.fdopen(ours, 'wb'), read, b''
        self._session = None
        target = next(one for one in self('Target.getTargets')['targetInfos'] if one['type'] == 'page')
        self._session = self('Target.attachToTarget', targetId=target['targetId'], flatten=True)['sessionId']
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self(f'{domain}.enable')
        self('Network.emulateNetworkConditions', offline=True, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        self('Browser.setDownloadBehavior', behavior='allow', downloadPath=str(folder / 'saved'), eventsEnabled=True)

    def close(self):
        '''End it; a second time does nothing.'''
        if self._process.poll() is None:
            self('Browser.close')
            self._process.wait(20)
            self._to.close(), os.close(self._from)

    def __call__(self, method, **parameters):
        '''Call a method of the protocol; its result.'''
        self._number += 1
        call = {'id': self._number, 'method': method, 'params': parameters}
        if self._session and not method.startswith(('Target.', 'Browser.')):
            call['sessionId'] = self._session
        self._to.write(json.dumps(call).encode() + b'\0'), self._to.flush()
        while True:
            told = self._next()
            if told.get('id') == self._number:
                assert 'error' not in told, (method, told['error'])
                return told['result']

    def _next(self):
        while b'\0' not in self._rest:
            more = os.read(self._from, 2**20)
            assert more, 'Chromium has ended'
            self._rest += more
        told, self._rest = self._rest.split(b'\0', 1)
        told = json.loads(told)
        self._hear(told.get('method'), told.get('params'))
        return told

    def _hear(self, method, told):
        if method == 'Runtime.exceptionThrown':
            self.said.append(json.dumps(told['exceptionDetails'])[:600])
        elif method == 'Runtime.consoleAPICalled' and told['type'] in ('error', 'warning', 'assert'):
            self.said.append(json.dumps(told['args'])[:600])
        elif method == 'Log.entryAdded' and told['entry']['level'] in ('error', 'warning'):
            self.said.append(told['entry']['text'])
        elif method == 'Network.requestWillBeSent' and not re.match('file:|data:|blob:', told['request']['url']):
            self.said.append(f"requests {told['request']['url']}")

    def wait(self, event):
        '''Until the browser tells of an event.'''
        while self._next().get('method') != event:
            pass

    def open(self, path, width=DESKTOP, dark=False, height=900):
        '''Open a page, as wide as said, and wait until its figures in sight are drawn.'''
        self('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=width < 600)
        self('Emulation.setEmulatedMedia', media='', features=[{'name': 'prefers-color-scheme', 'value': 'dark' if dark else 'light'}])
        self('Page.navigate', url=path.as_uri())
        self.wait('Page.loadEventFired')
        self.drawn()

    def drawn(self):
        '''Until every figure that is in sight is drawn.'''
        self.js('''new Promise(done => { const look = () => Array.from(document.querySelectorAll(".plot")).every(
            plot => plot.closest("details:not([open])") || plot.querySelector(".main-svg") || plot.textContent) ? done(true) : setTimeout(look, 20);
            look(); })''')

    def js(self, expression):
        '''The value of an expression, which may be a promise.'''
        found = self('Runtime.evaluate', expression=expression, awaitPromise=True, returnByValue=True)
        assert 'exceptionDetails' not in found, found['exceptionDetails']
        return found['result'].get('value')

    def key(self, key, code=None):
        '''Press a key; ``code`` of those that write nothing.'''
        more = {'text': key} if len(key) == 1 else {'windowsVirtualKeyCode': code, 'code': key}
        if key == 'Enter':
            more['text'] = '\r'
        self('Input.dispatchKeyEvent', type='keyDown', key=key, **more), self('Input.dispatchKeyEvent', type='keyUp', key=key, **more)

    def type(self, text):
        '''Write into what has the focus.'''
        for letter in text:
            self.key(letter)

    def print(self, path):
        '''The page as PDF.'''
        path.write_bytes(base64.b64decode(self('Page.printToPDF', printBackground=True, preferCSSPageSize=True)['data']))

    def saved(self):
        '''The text of the next file that is downloaded.'''
        while True:
            told = self._next()
            if told.get('method') == 'Browser.downloadWillBegin':
                name = told['params']['suggestedFilename']
            if told.get('method') == 'Browser.downloadProgress' and told['params']['state'] != 'inProgress':
                assert told['params']['state'] == 'completed', told
                return name, (self.folder / 'saved' / name).read_text(encoding='utf-8')
