import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Machine, expanded, find, installers, ownPlaces, projectPlaces } from '../src/find.ts';

function machine(programs: string[], more: Partial<Machine> = {}): Machine {
  const isProgram = (file: string) => programs.includes(file);
  return { platform: 'linux', home: '/home/ann', searchPath: '/usr/bin:/opt/bin', isProgram, ...more };
}

const EVERYWHERE = [
  '/opt/bin/mercury-ls',
  '/home/ann/.local/bin/mercury-ls',
  '/envs/shop/bin/mercury-ls',
  '/work/.venv/bin/mercury-ls',
];

function check(here: Machine, interpreters: string[], folders: string[]) {
  const { found, looked } = find([...ownPlaces(here), ...projectPlaces(interpreters, folders, here)], here);
  return { file: found?.command[0], isOfProject: found?.isOfProject, looked };
}

test('PATH comes first, then where tools are put, then the interpreter, then the workspace', () => {
  const found = [0, 1, 2, 3].map((gone) => check(machine(EVERYWHERE.slice(gone)), ['/envs/shop/bin/python'], ['/work']));
  assert.deepEqual(found.map((one) => one.file), EVERYWHERE);
  assert.deepEqual(found.map((one) => one.isOfProject), [false, false, true, true]);
});

test('every place that was looked at is told', () => {
  assert.deepEqual(check(machine(EVERYWHERE.slice(3)), ['/envs/no/bin/python'], ['/work']).looked, [
    'PATH: not in /usr/bin, /opt/bin',
    'programs of uv and pipx: not in /home/ann/.local/bin',
    'the Python interpreter: not in /envs/no/bin, /envs/no/bin/python/bin',
    'virtual environments of the workspace: /work/.venv/bin/mercury-ls',
  ]);
});

test('an environment may be named by its folder, and nothing is taken from the current folder', () => {
  assert.equal(check(machine(EVERYWHERE.slice(2)), ['/envs/shop'], []).file, EVERYWHERE[2]);
  const relative = machine(['mercury-ls', './mercury-ls', 'bin/mercury-ls'], { searchPath: ':.:' });
  assert.equal(check(relative, ['python', 'bin/python'], []).file, undefined);
});

test('Windows has other places', () => {
  const windows = { platform: 'win32' as const, home: 'C:\\Users\\ann', searchPath: 'C:\\bin;D:\\bin' };
  const file = 'D:\\work\\.venv\\Scripts\\mercury-ls.exe';
  assert.equal(check(machine([file], windows), [], ['D:\\work']).file, file);
  assert.equal(check(machine([file], windows), ['D:\\work\\.venv\\Scripts\\python.exe'], []).file, file);
});

test('a setting is read with its variables', () => {
  assert.equal(expanded('${workspaceFolder}/env/bin/python', '/work', machine([])), '/work/env/bin/python');
  assert.equal(expanded('~/env/bin/python', '/work', machine([])), '/home/ann/env/bin/python');
});

test('installers that are here are offered with their exact commands', () => {
  const [uv, pipx] = ['/home/ann/.local/bin/uv', '/opt/bin/pipx'];
  const here = machine([pipx, uv]);
  assert.deepEqual(installers('/clone', undefined, here), [
    { label: 'uv', commands: [[uv, 'tool', 'install', '/clone']] },
    { label: 'pipx', commands: [[pipx, 'install', '/clone']] },
  ]);
  assert.deepEqual(installers('/clone', '/clone/m', here), [
    { label: 'uv', commands: [[uv, 'tool', 'install', '/clone', '--with', '/clone/m']] },
    { label: 'pipx', commands: [[pipx, 'install', '/clone'], [pipx, 'inject', 'mercury-ls', '/clone/m']] },
  ]);
  assert.deepEqual(installers('/clone', undefined, machine([])), []);
});
