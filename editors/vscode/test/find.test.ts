import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Machine, find, installers } from '../src/find.ts';

function machine(programs: string[], more: Partial<Machine> = {}): Machine {
  const isProgram = (file: string) => programs.includes(file);
  return { platform: 'linux', home: '/home/ann', searchPath: '/usr/bin:/opt/bin', isProgram, ...more };
}

const EVERYWHERE = ['/opt/bin/mercury-ls', '/home/ann/.local/bin/mercury-ls', '/work/.venv/bin/mercury-ls'];

test('the setting comes first, then PATH, then where tools are put, then the workspace', () => {
  assert.deepEqual(find(['/my/own', '--x'], [], machine(EVERYWHERE))?.command, ['/my/own', '--x']);
  const found = [0, 1, 2].map((gone) => find([], ['/work'], machine(EVERYWHERE.slice(gone))));
  assert.deepEqual(found.map((one) => one?.command), EVERYWHERE.map((file) => [file]));
  assert.deepEqual(found.map((one) => one?.origin), ['PATH', 'tools', 'workspace']);
});

test('nothing is taken from a workspace that is not trusted, nor from the current folder', () => {
  assert.equal(find([], [], machine(['/work/.venv/bin/mercury-ls'])), undefined);
  assert.equal(find([], [], machine(['mercury-ls', './mercury-ls'], { searchPath: ':.:' })), undefined);
});

test('Windows has other places', () => {
  const windows = { platform: 'win32' as const, home: 'C:\\Users\\ann', searchPath: 'C:\\bin;D:\\bin' };
  const file = 'D:\\work\\.venv\\Scripts\\mercury-ls.exe';
  assert.deepEqual(find([], ['D:\\work'], machine([file], windows))?.command, [file]);
});

test('installers that are here are offered with their exact commands', () => {
  assert.deepEqual(installers('mercury-ls', machine(['/opt/bin/pipx', '/home/ann/.local/bin/uv'])), [
    { label: 'uv', command: ['/home/ann/.local/bin/uv', 'tool', 'install', 'mercury-ls'] },
    { label: 'pipx', command: ['/opt/bin/pipx', 'install', 'mercury-ls'] },
  ]);
  assert.deepEqual(installers('mercury-ls', machine([])), []);
});
