/** Where the language server is, and what would install it: pure, the machine is asked through `Machine`. */

import * as path from 'node:path';

export interface Machine {
  readonly platform: NodeJS.Platform;
  readonly home: string;
  readonly searchPath: string;
  isProgram(file: string): boolean;
}

export interface Found {
  readonly command: readonly string[];
  readonly origin: 'setting' | 'PATH' | 'tools' | 'workspace';
}

export interface Installer {
  readonly label: string;
  readonly command: readonly string[];
}

const NAME = 'mercury-ls';
const ENVIRONMENTS = ['.venv', 'venv'];

/**
 * The setting's command, or the program on `PATH`, or where `uv tool` and `pipx` put it, or in a virtual environment
 * of the workspace. `folders` are those of a trusted workspace: a stranger's folder must not name a program.
 */
export function find(configured: readonly string[], folders: readonly string[], machine: Machine): Found | undefined {
  if (configured.length > 0) {
    return { command: configured, origin: 'setting' };
  }
  const paths = pathsOf(machine);
  const places: [Found['origin'], string[]][] = [
    ['PATH', machine.searchPath.split(paths.delimiter).filter((folder) => paths.isAbsolute(folder))],
    ['tools', [toolFolder(machine)]],
    ['workspace', folders.flatMap((folder) => ENVIRONMENTS.map((name) => paths.join(folder, name, binaries(machine))))],
  ];
  for (const [origin, candidates] of places) {
    const file = candidates.map((folder) => program(folder, NAME, machine)).find((name) => machine.isProgram(name));
    if (file !== undefined) {
      return { command: [file], origin };
    }
  }
  return undefined;
}

/** The installers that are on this machine, best first, each with the exact command that it would run. */
export function installers(requirement: string, machine: Machine): Installer[] {
  const paths = pathsOf(machine);
  const folders = [...machine.searchPath.split(paths.delimiter), toolFolder(machine)].filter(paths.isAbsolute);
  const offered: [string, string[]][] = [
    ['uv', ['tool', 'install', requirement]],
    ['pipx', ['install', requirement]],
  ];
  return offered.flatMap(([name, command]) => {
    const file = folders.map((folder) => program(folder, name, machine)).find((one) => machine.isProgram(one));
    return file === undefined ? [] : [{ label: name, command: [file, ...command] }];
  });
}

function toolFolder(machine: Machine): string {
  return pathsOf(machine).join(machine.home, '.local', 'bin');
}

function program(folder: string, name: string, machine: Machine): string {
  return pathsOf(machine).join(folder, machine.platform === 'win32' ? `${name}.exe` : name);
}

function binaries(machine: Machine): string {
  return machine.platform === 'win32' ? 'Scripts' : 'bin';
}

function pathsOf(machine: Machine): path.PlatformPath {
  return machine.platform === 'win32' ? path.win32 : path.posix;
}
