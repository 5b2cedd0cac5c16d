/** The next edit: asked for when typing pauses, kept where it belongs, jumped to, made or refused. */

import * as path from 'node:path';
import * as vscode from 'vscode';
import { type Connection, SELECTOR } from './client.ts';
import { Decorations, rangeOf } from './decorations.ts';
import { draw } from './drawing.ts';
import { type Edit, type Range, compare, endOf, follow, nearest, plain } from './edits.ts';
import { register } from './native.ts';

interface Answer {
  readonly id: string;
  readonly label: string;
  readonly edits: {
    textDocument: { uri: string; version: number };
    range: Range;
    newText: string;
    display: 'ghost' | 'diff';
  }[];
}

interface Offer {
  readonly id: string;
  readonly label: string;
  readonly edits: readonly Edit[];
}

/** A name is not done as long as its letters keep coming: nobody wants it carried on half-written. */
const PAUSE_MS = 100;
const WORD_PAUSE_MS = 400;
const NEAR = 2;
const AUTOMATIC = 2;

export interface Surroundings {
  connection(): Connection;
  /** Why this document gets nothing; empty where it may. */
  silence(document: vscode.TextDocument): string;
  /** Whether ghost text may stand in this line: one thing at a time. */
  hasGhost(uri: string, line: number): boolean;
}

export class NextEdits implements vscode.Disposable {
  private offer: Offer | undefined;
  private asking: vscode.CancellationTokenSource | undefined;
  private timer: NodeJS.Timeout | undefined;
  private applying = false;
  private arrived: vscode.Position | undefined;
  private readonly around: Surroundings;
  private readonly decorations = new Decorations();
  private readonly native: vscode.Disposable | undefined;
  private answered: Promise<void> = Promise.resolve();
  private answers = (): void => undefined;
  private readonly subscriptions: vscode.Disposable[];

  constructor(around: Surroundings) {
    this.around = around;
    this.native = register(SELECTOR, {
      next: (document, position) => this.nextIn(document, position),
      refused: (id) => this.refuse(id),
    });
    this.subscriptions = [
      this.decorations,
      vscode.workspace.onDidChangeTextDocument((event) => this.changed(event)),
      vscode.window.onDidChangeTextEditorSelection(() => this.show()),
      vscode.window.onDidChangeTextEditorVisibleRanges(() => this.show()),
      vscode.window.onDidChangeActiveTextEditor(() => this.show()),
      ...(this.native ? [this.native] : []),
    ];
  }

  dispose(): void {
    this.clear();
    this.subscriptions.forEach((one) => one.dispose());
  }

  clear(): void {
    this.stopAsking();
    this.put(undefined);
  }

  // Asking

  private changed(event: vscode.TextDocumentChangeEvent): void {
    if (event.contentChanges.length === 0) {
      return;
    }
    const before = this.offer;
    this.put(before && moved(before, event));
    this.arrived = undefined;
    const goesOn = this.offer !== undefined && this.offer.edits.length < before!.edits.length;
    if (event.document !== vscode.window.activeTextEditor?.document || this.applying || goesOn) {
      return;
    }
    if (event.reason === undefined) {
      const inWord = event.contentChanges.some((change) => /[\p{L}\p{N}_]$/u.test(change.text));
      this.askSoon(inWord ? WORD_PAUSE_MS : PAUSE_MS);
    } else {
      this.clear();
    }
  }

  private askSoon(pause: number): void {
    this.stopAsking();
    if (display() !== 'off') {
      this.answered = new Promise((resolve) => (this.answers = resolve));
      this.timer = setTimeout(() => void this.ask().finally(this.answers), pause);
    }
  }

  private stopAsking(): void {
    clearTimeout(this.timer);
    this.asking?.cancel();
    this.asking = undefined;
    this.answers();
  }

  private async ask(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const client = this.around.connection().running;
    if (!client || !editor || editor.selections.length > 1 || this.around.silence(editor.document)) {
      return;
    }
    const mine = new vscode.CancellationTokenSource();
    this.asking = mine;
    const params = {
      textDocument: { uri: client.code2ProtocolConverter.asUri(editor.document.uri), version: editor.document.version },
      position: client.code2ProtocolConverter.asPosition(editor.selection.active),
      context: { triggerKind: AUTOMATIC },
    };
    const answer = await client.sendRequest<Answer | null>('mercury/nextEdit', params, mine.token).catch(() => null);
    if (this.asking === mine) {
      this.asking = undefined;
      this.put(answer ? offerOf(answer) : undefined);
    }
  }

  // Showing

  private put(offer: Offer | undefined): void {
    const shown = this.offer;
    this.offer = offer && offer.edits.length > 0 ? offer : undefined;
    if (shown !== undefined || this.offer !== undefined) {
      this.show();
    }
  }

  private isNative(uri: string): boolean {
    return this.native !== undefined && display() === 'auto' && this.offer!.edits.some((edit) => edit.uri === uri);
  }

  private show(): void {
    const editor = vscode.window.activeTextEditor;
    const offer = this.offer;
    if (offer === undefined || editor === undefined) {
      this.decorations.clear();
      return this.allow(false, false);
    }
    const uri = editor.document.uri.toString();
    const collides = offer.edits.some((edit) => edit.uri === uri && this.around.hasGhost(uri, edit.range.start.line));
    if (this.isNative(uri) || collides) {
      this.decorations.clear();
      return this.allow(false, false);
    }
    vscode.window.visibleTextEditors.forEach((one) => this.draw(one, one === editor));
    this.allow(true, !indents(editor) || this.hasArrived(editor));
  }

  private draw(editor: vscode.TextEditor, isActive: boolean): void {
    const document = editor.document;
    const tabSize = typeof editor.options.tabSize === 'number' ? editor.options.tabSize : 4;
    const lines = { count: document.lineCount, at: (row: number) => document.lineAt(row).text };
    const mine = this.offer!.edits.filter((edit) => edit.uri === document.uri.toString());
    const hint = isActive ? this.hint(editor) : undefined;
    this.decorations.show(editor, mine.flatMap((edit) => draw(edit, lines, tabSize)), hint);
  }

  /** Where the next edit cannot be seen, the cursor's line says where it is. */
  private hint(editor: vscode.TextEditor): { line: number; text: string } | undefined {
    const line = editor.selection.active.line;
    const target = this.target(editor);
    if (isInSight(editor, target)) {
      return undefined;
    }
    const at = target.range.start.line;
    const elsewhere = target.uri !== editor.document.uri.toString();
    const arrow = elsewhere ? '→' : at > line ? '↓' : '↑';
    const place = elsewhere ? `${path.posix.basename(vscode.Uri.parse(target.uri).path)}:${at + 1}` : `line ${at + 1}`;
    return { line, text: `${arrow} next edit: ${place} (Tab)` };
  }

  private allow(shown: boolean, byTab: boolean): void {
    void vscode.commands.executeCommand('setContext', 'mercury-ls.nextEdit', shown);
    void vscode.commands.executeCommand('setContext', 'mercury-ls.nextEditByTab', shown && byTab);
  }

  private target(editor: vscode.TextEditor): Edit {
    return nearest(this.offer!.edits, editor.document.uri.toString(), editor.selection.active.line);
  }

  private hasArrived(editor: vscode.TextEditor): boolean {
    return this.arrived !== undefined && this.arrived.isEqual(editor.selection.active);
  }

  // Accepting

  /** A key comes before the editor has heard where the cursor is by now: what it meant is looked at once more. */
  async tab(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor && this.offer && (!indents(editor) || this.hasArrived(editor))) {
      await this.accept('all');
    } else {
      await vscode.commands.executeCommand('tab');
    }
  }

  /** Goes there where it is out of sight or away from the cursor, and makes all of it otherwise, or only the nearest. */
  async accept(part: 'all' | 'one'): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined || this.offer === undefined) {
      return;
    }
    const target = this.target(editor);
    if (isNear(editor, target)) {
      await this.make(part === 'all' ? this.offer.edits : [target], target);
    } else {
      await this.jump(target);
    }
  }

  private async jump(target: Edit): Promise<void> {
    const start = rangeOf(target.range).start;
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(target.uri));
    this.arrived = start;
    const editor = await vscode.window.showTextDocument(document, { selection: new vscode.Range(start, start) });
    editor.revealRange(rangeOf(target.range), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    this.show();
  }

  /** Exactly what was shown, or nothing: a text that is not as it was is left alone. */
  private async make(edits: readonly Edit[], target: Edit): Promise<void> {
    const change = new vscode.WorkspaceEdit();
    for (const edit of edits) {
      if (textOf(edit) !== edit.removed) {
        return this.clear();
      }
      change.replace(vscode.Uri.parse(edit.uri), rangeOf(edit.range), edit.text);
    }
    const { id } = this.offer!;
    this.applying = true;
    const made = await vscode.workspace.applyEdit(change).then(undefined, () => false);
    this.applying = false;
    if (made && this.offer === undefined) {
      this.took(id);
    }
    if (made) {
      this.moveBehind(target, edits);
    }
  }

  private moveBehind(target: Edit, edits: readonly Edit[]): void {
    const editor = vscode.window.activeTextEditor;
    if (editor?.document.uri.toString() !== target.uri) {
      return;
    }
    const others = edits.filter((edit) => edit !== target && edit.uri === target.uri);
    others.sort((a, b) => compare(b.range.start, a.range.start));
    const after = others.reduce((place, edit) => (follow([place], [edit]) ?? [place])[0] ?? place, target);
    const end = endOf(after.range.start, target.text);
    const position = new vscode.Position(end.line, end.character);
    editor.selection = new vscode.Selection(position, position);
    editor.revealRange(new vscode.Range(position, position));
  }

  /** The editor, or we, have made an edit of this offer. */
  took(id: string): void {
    if (this.offer?.id !== id) {
      void this.around.connection().running?.sendNotification('mercury/didAccept', { id });
      this.askSoon(PAUSE_MS);
    }
  }

  dismiss(): void {
    if (this.offer !== undefined) {
      this.refuse(this.offer.id);
    }
  }

  private refuse(id: string): void {
    if (this.offer?.id === id) {
      void this.around.connection().running?.sendNotification('mercury/didReject', { id });
      this.clear();
    }
  }

  /** For the editor's own inline edits, which are one at a time. */
  private async nextIn(document: vscode.TextDocument, position: vscode.Position) {
    if (display() === 'auto') {
      await this.answered;
    }
    const uri = document.uri.toString();
    if (this.offer === undefined || !this.isNative(uri) || this.around.hasGhost(uri, position.line)) {
      return undefined;
    }
    return { id: this.offer.id, edit: nearest(this.offer.edits, uri, position.line) };
  }
}

function display(): 'auto' | 'decorations' | 'off' {
  return vscode.workspace.getConfiguration('mercury-ls').get('nextEdit.display', 'auto');
}

/** The offer that an answer makes; undefined unless every document is at the version that its edits are for. */
function offerOf(answer: Answer): Offer | undefined {
  const edits: Edit[] = [];
  for (const { textDocument, range, newText, display } of answer.edits) {
    const document = documentOf(textDocument.uri);
    if (document?.version !== textDocument.version) {
      return undefined;
    }
    const removed = plain(document.getText(rangeOf(range)));
    edits.push({ uri: document.uri.toString(), range, text: plain(newText), removed, display });
  }
  return { id: answer.id, label: answer.label, edits };
}

function documentOf(uri: string): vscode.TextDocument | undefined {
  const wanted = vscode.Uri.parse(uri).toString();
  return vscode.workspace.textDocuments.find((document) => document.uri.toString() === wanted);
}

function textOf(edit: Edit): string | undefined {
  const document = documentOf(edit.uri);
  return document && plain(document.getText(rangeOf(edit.range)));
}

/** The offer in the text as it is after an event; undefined where the text went elsewhere. */
function moved(offer: Offer, event: vscode.TextDocumentChangeEvent): Offer | undefined {
  const uri = event.document.uri.toString();
  const here = follow(offer.edits.filter((edit) => edit.uri === uri), event.contentChanges);
  const elsewhere = offer.edits.filter((edit) => edit.uri !== uri);
  return here && { ...offer, edits: [...here, ...elsewhere] };
}

function isInSight(editor: vscode.TextEditor, edit: Edit): boolean {
  const row = edit.range.start.line;
  const here = edit.uri === editor.document.uri.toString();
  return here && editor.visibleRanges.some((range) => row >= range.start.line && row <= range.end.line);
}

function isNear(editor: vscode.TextEditor, edit: Edit): boolean {
  const row = editor.selection.active.line;
  const { start, end } = edit.range;
  return isInSight(editor, edit) && row >= start.line - NEAR && row <= end.line + NEAR;
}

/** Tab is for indenting where only white space is before the cursor. */
function indents(editor: vscode.TextEditor): boolean {
  const { line, character } = editor.selection.active;
  return /^\s*$/.test(editor.document.lineAt(line).text.slice(0, character));
}
