/** Whether another extension can rename in a document: the user's own language server knows more than we do. */

import { setTimeout as after } from 'node:timers/promises';
import * as vscode from 'vscode';

/** The editor does not tell who it is. */
const SOMEBODY = 'another extension';

/** Who has said nothing by then is not counted on: it is asked again with the next edit. */
const PATIENCE = 300;

export class Renames implements vscode.Disposable {
  private readonly known = new Set<string>();
  private readonly subscription = vscode.extensions.onDidChange(() => this.known.clear());

  dispose(): void {
    this.subscription.dispose();
  }

  /** Its name; empty where there is none. Others may still be starting: only a yes is kept, for the language. */
  async provider(document: vscode.TextDocument): Promise<string> {
    if (this.known.has(document.languageId)) {
      return SOMEBODY;
    }
    const answered = refuses(document);
    const found = await Promise.race([answered, after(PATIENCE, undefined, { ref: false })]);
    if (found) {
      this.known.add(document.languageId);
    }
    return found ? SOMEBODY : '';
  }
}

/**
 * The editor has no list of who can rename. Asked to rename where no name is, it has an empty answer where nobody can,
 * and the refusal of whoever could elsewhere; no server has to look for any use. A closed document is refused by all.
 */
async function refuses(document: vscode.TextDocument): Promise<boolean> {
  const place = blank(document);
  if (place === undefined) {
    return false;
  }
  const request = vscode.commands.executeCommand('vscode.executeDocumentRenameProvider', document.uri, place, 'name');
  return request.then(() => false, () => !document.isClosed);
}

function blank(document: vscode.TextDocument): vscode.Position | undefined {
  for (let row = 0; row < document.lineCount; row += 1) {
    if (document.lineAt(row).isEmptyOrWhitespace) {
      return new vscode.Position(row, 0);
    }
  }
  return undefined;
}
