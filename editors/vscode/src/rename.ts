/** Whether another extension can rename in a document: the user's own language server knows more than we do. */

import { setTimeout as after } from 'node:timers/promises';
import * as vscode from 'vscode';

/** The editor does not tell who it is. */
const SOMEBODY = 'another extension';

/** Who has said nothing by then is not counted on; what it says later counts for the next edit. */
const PATIENCE = 300;
const GIVEN_UP = 10_000;

export class Renames implements vscode.Disposable {
  private readonly known = new Map<string, boolean>();
  private readonly asked = new Map<string, Promise<boolean>>();
  private readonly subscription = vscode.extensions.onDidChange(() => this.known.clear());

  dispose(): void {
    this.subscription.dispose();
  }

  /** Asks ahead: a server that has much to do answers later than anybody waits for it. */
  look(document: vscode.TextDocument): Promise<boolean> {
    const language = document.languageId;
    if (this.known.get(language)) {
      return Promise.resolve(true);
    }
    const asked = this.asked.get(language) ?? this.ask(document);
    this.asked.set(language, asked);
    return asked;
  }

  private async ask(document: vscode.TextDocument): Promise<boolean> {
    const found = await within(GIVEN_UP, refuses(document));
    this.known.set(document.languageId, found);
    this.asked.delete(document.languageId);
    return found;
  }

  /**
   * Its name; empty where there is none. Others may still be starting: a yes is kept, for the language, and a no only until
   * the next answer, for which nobody waits.
   */
  async provider(document: vscode.TextDocument): Promise<string> {
    const asked = this.look(document);
    const found = this.known.get(document.languageId) ?? (await within(PATIENCE, asked));
    return found ? SOMEBODY : '';
  }
}

function within(milliseconds: number, answer: Promise<boolean>): Promise<boolean> {
  return Promise.race([answer, after(milliseconds, false, { ref: false })]);
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
