/** Ghost text: the editor draws it and takes it; here is remembered what was offered, to tell what became of it. */

import * as vscode from 'vscode';
import { type Connection, SELECTOR } from './client.ts';
import { accepted } from './edits.ts';

/** Has the editor ask that provider of ours which was registered last, as if of its own accord. */
const NEWEST = { providerId: 'mercury-ls.mercury-ls:*', explicit: false };

interface Offered {
  readonly uri: string;
  readonly start: vscode.Position;
  readonly text: string;
  readonly id: string;
  readonly command: vscode.Command;
}

export class Ghost {
  private offered: Offered[] = [];
  private asked: { version: number; position: vscode.Position } | undefined;
  private told = false;
  private kind = vscode.InlineCompletionTriggerKind.Automatic;
  private growing = 0;
  private readonly connection: () => Connection;
  private readonly changed: () => void;

  constructor(connection: () => Connection, changed: () => void) {
    this.connection = connection;
    this.changed = changed;
  }

  /**
   * There is more of what is on the screen, or something at last: the editor asks again, and what there is stays
   * meanwhile. Where nothing was typed it asks only providers that it has not asked yet, and only an answer to an
   * automatic question replaces what it shows.
   */
  async grown(uri: string): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const provider = editor && this.connection().provider(editor.document);
    const waits = editor && (this.isAt(uri, editor.selection.active.line) || this.isUnanswered(editor));
    if (provider && waits && editor.document.uri.toString() === uri) {
      this.growing += 1;
      const again = vscode.languages.registerInlineCompletionItemProvider(SELECTOR, provider);
      await vscode.commands.executeCommand('editor.action.inlineSuggest.trigger', NEWEST).then(undefined, () => undefined);
      again.dispose();
      this.growing -= 1;
    }
  }

  /** What the editor asks; for more of an answer it only repeats what it asked before. */
  asking(context: vscode.InlineCompletionContext): vscode.InlineCompletionContext {
    this.kind = this.growing > 0 ? this.kind : context.triggerKind;
    return { ...context, triggerKind: this.kind };
  }

  /** What the newest answer offered; the context key lets our keys act only while it may be on the screen. */
  remember(document: vscode.TextDocument, position: vscode.Position, found: vscode.InlineCompletionItem[]): void {
    this.asked = { version: document.version, position };
    this.offered = found.flatMap((item) => {
      const id: unknown = item.command?.arguments?.[0];
      if (item.command === undefined || item.range === undefined || typeof id !== 'string') {
        return [];
      }
      const text = typeof item.insertText === 'string' ? item.insertText : item.insertText.value;
      return [{ uri: document.uri.toString(), start: item.range.start, text, id, command: item.command }];
    });
    this.tell();
  }

  forget(): void {
    this.offered = [];
    this.tell();
  }

  /** Only what is new: the editor hears it before the answer, and looks at all its keys again. */
  private tell(): void {
    const suggested = this.offered.length > 0;
    if (suggested !== this.told) {
      this.told = suggested;
      void vscode.commands.executeCommand('setContext', 'mercury-ls.suggested', suggested);
    }
    this.changed();
  }

  /**
   * Whether a suggestion stands in this line. The editor asks for one where the text changes, until when the last one
   * may still be there; where only the cursor moves, it takes it away.
   */
  isAt(uri: string, line: number): boolean {
    const editor = vscode.window.activeTextEditor;
    const cursor = editor?.selection.active;
    const moved = editor?.document.version === this.asked?.version && !cursor?.isEqual(this.asked!.position);
    const here = this.offered.some((one) => one.uri === uri && one.start.line === line);
    return here && cursor?.line === line && !moved;
  }

  /** Whether the last answer, to a question asked just here, was that there is nothing yet. */
  private isUnanswered(editor: vscode.TextEditor): boolean {
    const isHere = this.asked?.version === editor.document.version && this.asked.position.isEqual(editor.selection.active);
    return this.offered.length === 0 && isHere;
  }

  /** The editor takes a part by this command of its own; the server hears how much stands there then. */
  async acceptPart(command: string): Promise<void> {
    const offered = this.offered;
    await vscode.commands.executeCommand(command);
    const editor = vscode.window.activeTextEditor;
    for (const one of offered) {
      const typed = editor?.document.getText(new vscode.Range(one.start, editor.selection.active)) ?? '';
      const length = one.uri === editor?.document.uri.toString() ? accepted(one.text, typed) : 0;
      if (length > 0) {
        const told = { item: { command: one.command }, acceptedLength: length };
        return this.connection().running?.sendNotification('textDocument/didPartiallyAcceptCompletion', told);
      }
    }
  }

  async dismiss(): Promise<void> {
    await vscode.commands.executeCommand('editor.action.inlineSuggest.hide');
    for (const one of this.offered) {
      await this.connection().running?.sendNotification('mercury/didReject', { id: one.id });
    }
    this.forget();
  }
}
