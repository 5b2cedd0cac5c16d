/** Finding the server on this machine, and installing it only when the user has seen the exact command and said yes. */

import { spawn } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { type Found, type Installer, type Machine, expanded, find, installers, ownPlaces, projectPlaces } from './find.ts';
import { ask, complain, inform, warn } from './notify.ts';
import { interpreters, onDidChangeInterpreter } from './python.ts';

const MACHINE: Machine = {
  platform: process.platform,
  home: os.homedir(),
  searchPath: process.env.PATH ?? '',
  isProgram: (file) => {
    try {
      fs.accessSync(file, fs.constants.X_OK);
      return fs.statSync(file).isFile();
    } catch {
      return false;
    }
  },
};

const AGREED = 'servers of projects that were agreed to';

/** Where the server is. One that a project brings along is started only after the user has agreed to that very file. */
export class Server implements vscode.Disposable {
  private readonly context: vscode.ExtensionContext;
  private readonly log: vscode.LogOutputChannel;
  private readonly interpreterChanged: () => void;
  private listening: vscode.Disposable | undefined;

  constructor(context: vscode.ExtensionContext, log: vscode.LogOutputChannel, interpreterChanged: () => void) {
    this.context = context;
    this.log = log;
    this.interpreterChanged = interpreterChanged;
  }

  dispose(): void {
    this.listening?.dispose();
  }

  /** Nothing of a workspace that is not trusted is looked at, the Python extension's choice for it included. */
  async find(): Promise<Found | undefined> {
    const configured = vscode.workspace.getConfiguration('mercury-ls').get<string[]>('server.command', []);
    if (configured.length > 0) {
      this.log.info(`the server is what mercury-ls.server.command says: ${configured.join(' ')}`);
      return { command: configured, isOfProject: false };
    }
    let { found, looked } = find(ownPlaces(MACHINE), MACHINE);
    if (found === undefined && vscode.workspace.isTrusted) {
      const folders = (vscode.workspace.workspaceFolders ?? []).filter((folder) => folder.uri.scheme === 'file');
      const paths = folders.map((folder) => folder.uri.fsPath);
      const named = (await interpreters(folders)).map((one) => expanded(one, paths[0] ?? '', MACHINE));
      this.listening ??= onDidChangeInterpreter(this.interpreterChanged);
      const more = find(projectPlaces(named, paths, MACHINE), MACHINE);
      [found, looked] = [more.found, [...looked, ...more.looked]];
    } else if (found === undefined) {
      looked = [...looked, 'the workspace: it is not trusted'];
    }
    looked.forEach((line) => this.log.info(`looked for the server: ${line}`));
    this.log.info(found ? `the server is ${found.command[0]}` : 'no server was found');
    return found;
  }

  isAgreed({ command, isOfProject }: Found): boolean {
    return !isOfProject || this.agreed().includes(command[0]);
  }

  async agrees({ command }: Found): Promise<boolean> {
    const text =
      `Mercury found its server in this project's Python environment: ${command[0]}. It would run with all your ` +
      'rights, and whoever made the project may have put it there. Start it only if you installed it yourself.';
    const start = 'Start It';
    if ((await warn(text, start, 'Not This One')) !== start) {
      this.log.info(`${command[0]} is not started: the user has not agreed to it`);
      return false;
    }
    await this.context.globalState.update(AGREED, [...this.agreed(), command[0]]);
    return true;
  }

  private agreed(): readonly string[] {
    return this.context.globalState.get(AGREED, []);
  }
}

/** Whether the server has been installed; one that is chosen instead is a setting, and starts as such. */
export async function install(log: vscode.LogOutputChannel): Promise<boolean> {
  const offered = installers('', undefined, MACHINE);
  const choose = 'Choose the Program…';
  const text = 'Mercury needs its language server, mercury-ls, which was not found on this machine.';
  const told = offered.length > 0 ? text : `${text} Install uv or pipx to have it installed from here.`;
  const labels = offered.map((one) => `Install with ${one.label}…`);
  const answer = await inform(told, ...labels, choose);
  if (answer === choose) {
    await chooseProgram();
    return false;
  }
  const index = labels.indexOf(answer ?? '');
  const requirement = index >= 0 ? await source() : undefined;
  if (requirement === undefined) {
    return false;
  }
  const chosen = installers(requirement, modelOf(requirement), MACHINE)[index];
  return (await agreed(chosen)) && run(chosen, log);
}

/** What is installed: never a name that anybody could have taken on a package index, unless the user has set it. */
async function source(): Promise<string | undefined> {
  const set = vscode.workspace.getConfiguration('mercury-ls').get('server.package', '');
  if (set !== '') {
    return set;
  }
  const choice = { title: 'The clone of mercury-ls', canSelectFolders: true, canSelectFiles: false };
  return (await vscode.window.showOpenDialog(choice))?.[0]?.fsPath;
}

/** The folder of the model that a clone has beside the server. */
function modelOf(clone: string): string | undefined {
  const folder = path.join(clone, 'models', 'quicksilver');
  return fs.existsSync(folder) ? folder : undefined;
}

async function chooseProgram(): Promise<void> {
  const [program] = (await vscode.window.showOpenDialog({ title: 'The program mercury-ls' })) ?? [];
  if (program !== undefined) {
    const configuration = vscode.workspace.getConfiguration('mercury-ls');
    await configuration.update('server.command', [program.fsPath], vscode.ConfigurationTarget.Global);
  }
}

async function agreed(installer: Installer): Promise<boolean> {
  const shown = installer.commands.map((command) => command.join(' ')).join('\n');
  const detail = `${shown}\n\nIt downloads about 90 MB of packages, and takes half a gigabyte in a folder of its own in your home.`;
  return (await ask('Run this command?', detail, 'Run')) === 'Run';
}

function run(installer: Installer, log: vscode.LogOutputChannel): Thenable<boolean> {
  const title = `Installing mercury-ls with ${installer.label}`;
  return vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title }, async () => {
    let problem = '';
    for (const command of installer.commands) {
      problem ||= await finished(command, log);
    }
    if (problem !== '') {
      const show = 'Show Log';
      const answer = await complain(`mercury-ls was not installed: ${problem}`, show);
      if (answer === show) {
        log.show();
      }
    }
    return problem === '';
  });
}

/** What went wrong; empty where nothing did. */
function finished(command: readonly string[], log: vscode.LogOutputChannel): Promise<string> {
  const [program, ...rest] = command;
  log.info(`running ${command.join(' ')}`);
  return new Promise((resolve) => {
    const child = spawn(program, rest, { stdio: ['ignore', 'pipe', 'pipe'] });
    const lines = (data: Buffer) => log.info(data.toString().trimEnd());
    child.stdout.on('data', lines);
    child.stderr.on('data', lines);
    child.on('error', (error) => resolve(error.message));
    child.on('close', (code) => resolve(code === 0 ? '' : `${program} ended with ${code}`));
  });
}
