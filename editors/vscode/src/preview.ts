/** The edits of an offer as a list to walk through: each is shown where it is, single ones can be left out. */

import * as path from 'node:path';
import * as vscode from 'vscode';
import { type Decorations, rangeOf } from './decorations.ts';
import { type Edit, oneLine } from './edits.ts';

interface Entry extends vscode.QuickPickItem {
  readonly index: number;
}

/** Which edits the user wants; undefined where the list was left. */
export async function choose(
  edits: readonly Edit[],
  title: string,
  note: string,
  decorations: Decorations,
): Promise<readonly number[] | undefined> {
  const list = vscode.window.createQuickPick<Entry>();
  const entries = edits.map(entry);
  list.title = `Next edits: ${title}`;
  list.placeholder = note || 'Enter applies the checked edits';
  list.canSelectMany = true;
  list.matchOnDescription = list.matchOnDetail = true;
  list.items = entries;
  list.selectedItems = entries;
  list.onDidChangeActive(([active]) => active && void reveal(edits[active.index], decorations));
  try {
    return await new Promise((resolve) => {
      list.onDidAccept(() => resolve(list.selectedItems.map(({ index }) => index)));
      list.onDidHide(() => resolve(undefined));
      list.show();
      list.activeItems = entries.slice(0, 1);
    });
  } finally {
    list.dispose();
    decorations.point(undefined);
  }
}

function entry(edit: Edit, index: number): Entry {
  const file = vscode.Uri.parse(edit.uri);
  const folder = path.posix.dirname(vscode.workspace.asRelativePath(file));
  const label = `${path.posix.basename(file.path)}:${edit.range.start.line + 1}`;
  const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === edit.uri)!;
  return { index, label, description: folder === '.' ? '' : folder, detail: oneLine(edit, document.lineAt.bind(document)) };
}

async function reveal(edit: Edit, decorations: Decorations): Promise<void> {
  const range = rangeOf(edit.range);
  const open = vscode.window.visibleTextEditors.find((editor) => editor.document.uri.toString() === edit.uri);
  const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(edit.uri));
  const viewColumn = open?.viewColumn;
  const editor = await vscode.window.showTextDocument(document, { viewColumn, preserveFocus: true, preview: true });
  editor.revealRange(range, vscode.TextEditorRevealType.InCenter);
  decorations.point(editor, range);
}
