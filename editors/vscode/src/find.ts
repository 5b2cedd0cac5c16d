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
  /** Whether a project has put it there, or names it: such a program is started only with the user's leave. */
  readonly isOfProject: boolean;
}

/** Folders in which the program may be, under the name by which the log speaks of them. */
export interface Place {
  readonly name: string;
  readonly folders: readonly string[];
  readonly isOfProject: boolean;
}

/** What was found, and a line for every place that was looked at until then. */
export interface Search {
  readonly found?: Found;
  readonly looked: readonly string[];
}

export interface Installer {
  readonly label: string;
  readonly commands: readonly (readonly string[])[];
}

const NAME = 'mercury-ls';
const ENVIRONMENTS = ['.venv', 'venv'];

/** Where people install it for themselves: a folder that is not absolute would be looked for in the project. */
export function ownPlaces(machine: Machine): Place[] {
  const paths = pathsOf(machine);
  const searched = machine.searchPath.split(paths.delimiter).filter((folder) => paths.isAbsolute(folder));
  return [
    { name: 'PATH', folders: searched, isOfProject: false },
    { name: 'programs of uv and pipx', folders: [toolFolder(machine)], isOfProject: false },
  ];
}

/**
 * Beside the interpreters that the Python extension or its setting name, and in the virtual environments of the folders
 * of a workspace. An interpreter may be named by the folder of its environment.
 */
export function projectPlaces(interpreters: readonly string[], folders: readonly string[], machine: Machine): Place[] {
  const paths = pathsOf(machine);
  const named = interpreters.filter((file) => paths.isAbsolute(file));
  const beside = named.flatMap((file) => [paths.dirname(file), paths.join(file, binaries(machine))]);
  const local = folders.flatMap((folder) => ENVIRONMENTS.map((name) => paths.join(folder, name, binaries(machine))));
  return [
    { name: 'the Python interpreter', folders: beside, isOfProject: true },
    { name: 'virtual environments of the workspace', folders: local, isOfProject: true },
  ];
}

export function find(places: readonly Place[], machine: Machine): Search {
  const looked: string[] = [];
  for (const { name, folders, isOfProject } of places) {
    const file = folders.map((folder) => program(folder, NAME, machine)).find((one) => machine.isProgram(one));
    if (file !== undefined) {
      return { found: { command: [file], isOfProject }, looked: [...looked, `${name}: ${file}`] };
    }
    looked.push(`${name}: not in ${folders.join(', ') || 'any folder'}`);
  }
  return { looked };
}

/** A path of a setting, with the variables that people write in it. */
export function expanded(setting: string, folder: string, machine: Machine): string {
  const named = setting.replace(/\$\{workspace(Folder|Root)\}/g, () => folder).replace(/\$\{userHome\}/g, () => machine.home);
  return named.replace(/^~(?=[\\/])/, () => machine.home);
}

/** The installers that are on this machine, best first, each with the exact commands that it would run: for the server,
 * and for the model that a clone has beside it. */
export function installers(requirement: string, model: string | undefined, machine: Machine): Installer[] {
  const paths = pathsOf(machine);
  const folders = [...machine.searchPath.split(paths.delimiter), toolFolder(machine)].filter(paths.isAbsolute);
  const more = (...before: string[]) => (model === undefined ? [] : [...before, model]);
  const offered: [string, string[][]][] = [
    ['uv', [['tool', 'install', requirement, ...more('--with')]]],
    ['pipx', [['install', requirement], more('inject', NAME)].filter((command) => command.length > 0)],
  ];
  return offered.flatMap(([name, commands]) => {
    const file = folders.map((folder) => program(folder, name, machine)).find((one) => machine.isProgram(one));
    return file === undefined ? [] : [{ label: name, commands: commands.map((command) => [file, ...command]) }];
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
