/** The interpreters that people have chosen for their folders, as the Python extension or its setting has them. */

import * as vscode from 'vscode';

/** What is used here of the interface of `ms-python.python`. */
interface Python {
  readonly environments?: {
    getActiveEnvironmentPath(folder?: vscode.Uri): { readonly path: string };
    readonly onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

const SETTING = 'defaultInterpreterPath';

export async function interpreters(folders: readonly vscode.WorkspaceFolder[]): Promise<string[]> {
  const python = await Promise.resolve(extension()?.activate()).catch(() => undefined);
  const chosen = places(folders).map((uri) => python?.environments?.getActiveEnvironmentPath(uri).path ?? '');
  const set = places(folders).map((uri) => vscode.workspace.getConfiguration('python', uri).get(SETTING, ''));
  return [...new Set([...chosen, ...set])].filter((path) => path !== '');
}

/** Once the extension is awake: nobody is woken up for it. */
export function onDidChangeInterpreter(listener: () => void): vscode.Disposable {
  const setting = vscode.workspace.onDidChangeConfiguration((event) => {
    if (event.affectsConfiguration(`python.${SETTING}`)) {
      listener();
    }
  });
  const python = extension();
  const choice = python?.isActive ? python.exports.environments?.onDidChangeActiveEnvironmentPath(listener) : undefined;
  return vscode.Disposable.from(setting, ...(choice ? [choice] : []));
}

function extension(): vscode.Extension<Python> | undefined {
  return vscode.extensions.getExtension<Python>('ms-python.python');
}

function places(folders: readonly vscode.WorkspaceFolder[]): (vscode.Uri | undefined)[] {
  return folders.length > 0 ? folders.map((folder) => folder.uri) : [undefined];
}
