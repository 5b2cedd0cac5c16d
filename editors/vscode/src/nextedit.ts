/** The next edit: asked for when typing pauses, kept where it belongs, listed, jumped to, made or rejected. */

import * as path from 'node:path';
import { setTimeout as after } from 'node:timers/promises';
import * as vscode from 'vscode';
import type { Connection } from './client.ts';
import { Decorations, rangeOf } from './decorations.ts';
import { draw } from './drawing.ts';
import { type Edit, type Range, compare, endOf, follow, nearest, plain } from './edits.ts';
import { choose } from './preview.ts';
import { Renames } from './rename.ts';

/** `version` is null for a file that is not open, `oldText` what the range holds; older servers say less. */
interface Answer {
  readonly id: string;
  readonly label: string;
  readonly kind?: string;
  readonly summary?: string;
  readonly note?: string;
  readonly edits: {
    textDocument: { uri: string; version: number | null };
    range: Range;
    oldText?: string;
    newText: string;
    display: 'ghost' | 'diff';
  }[];
}

/** `summary` is how the edits look from the document that they were asked from, as long as none of them is made. */
interface Offer {
  readonly id: string;
  readonly label: string;
  readonly summary: string;
  readonly note: string;
  readonly from: string;
  /** Whether it only leads to where something is broken. */
  readonly isPlace: boolean;
  readonly edits: readonly Edit[];
  readonly made: number;
}

/** A name is not done as long as its letters keep coming: nobody wants it carried on half-written. A model that rewrites
 * reads the text as it is; it is asked at once, and what it says is not shown between two keys either. */
const EAGER_MS = 10;
const PAUSE_MS = 100;
const WORD_PAUSE_MS = 400;
/** Who has written nothing for so long is not in the middle of a word. */
const WRITTEN_MS = 1_000;
const REWRITE = 'region';
const PLACE = 'diagnostic';
const NEAR = 2;
const LONGEST_HINT = 64;
const INVOKED = 1;
const AUTOMATIC = 2;
/** Who has not moved for so long after an edit may be about to change this line as well. */
const REST_MS = 500;
/** The first question after an edit comes soon, for the model has to read the edit whatever the line is. */
const FIRST_REST_MS = 150;
/** For so long after an edit lines are asked about. */
const FRESH_MS = 300_000;
const KEY = process.platform === 'darwin' ? '⌘⌥.' : 'Ctrl+Alt+.';
const MESSAGE_MS = 8_000;

interface Line {
  readonly uri: string;
  readonly line: number;
  readonly version: number;
}

export interface Surroundings {
  connection(): Connection;
  /** Why this document gets nothing; empty where it may. */
  silence(document: vscode.TextDocument): string;
  /** Whether ghost text may stand in this line: one thing at a time. */
  hasGhost(uri: string, line: number): boolean;
  /** Whether the server wishes to be asked at once, or where the user rests. */
  wishes(wish: 'eager' | 'atRest'): boolean;
}

export class NextEdits implements vscode.Disposable {
  private offer: Offer | undefined;
  private asking: vscode.CancellationTokenSource | undefined;
  private timer: NodeJS.Timeout | undefined;
  private edited = { at: 0, pause: 0 };
  private changedAt = 0;
  private changedLine: Line | undefined;
  private rests: NodeJS.Timeout | undefined;
  private restedIn: Line | undefined;
  private restedAt = 0;
  private askingAtRest: vscode.CancellationTokenSource | undefined;
  private isShown = false;
  private making: readonly Edit[] = [];
  private arrived: vscode.Position | undefined;
  private shown: string | undefined;
  private menuIsOpen = false;
  private choosing = false;
  private readonly around: Surroundings;
  private readonly decorations = new Decorations();
  private readonly renames = new Renames();
  private readonly subscriptions: vscode.Disposable[];

  constructor(around: Surroundings) {
    this.around = around;
    this.subscriptions = [
      this.decorations,
      this.renames,
      vscode.workspace.onDidChangeTextDocument((event) => this.changed(event)),
      vscode.window.onDidChangeTextEditorSelection(() => this.moved()),
      vscode.window.onDidChangeTextEditorVisibleRanges(() => this.show()),
      vscode.window.onDidChangeActiveTextEditor(() => this.show()),
    ];
  }

  dispose(): void {
    this.clear();
    clearTimeout(this.rests);
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
    this.changedAt = Date.now();
    if (event.document === vscode.window.activeTextEditor?.document) {
      const line = Math.max(...event.contentChanges.map((change) => change.range.start.line));
      this.changedLine = { uri: event.document.uri.toString(), line, version: event.document.version };
    }
    const before = this.offer;
    this.put(before && moved(before, event, this.making));
    this.arrived = undefined;
    const goesOn = this.offer !== undefined && this.offer.edits.length < before!.edits.length;
    if (event.document !== vscode.window.activeTextEditor?.document || this.making.length > 0 || goesOn) {
      return;
    }
    if (event.reason === undefined) {
      void this.renames.look(event.document);
      const inWord = event.contentChanges.some((change) => /[\p{L}\p{N}_]$/u.test(change.text));
      this.askSoon(inWord ? WORD_PAUSE_MS : PAUSE_MS);
    } else {
      this.clear();
    }
  }

  /** Asks again for what follows from the last edits, unless something is on offer. */
  refresh(): void {
    if (this.offer === undefined) {
      this.askSoon(PAUSE_MS);
    }
  }

  /** Other places are broken than were: they are asked for once the user has stopped. */
  placesChanged(): void {
    if (this.offer === undefined || this.offer.isPlace) {
      const pause = Math.max(PAUSE_MS, this.changedAt + WRITTEN_MS - Date.now());
      this.askSoon(pause, pause);
    }
  }

  private askSoon(pause: number, wait = this.around.wishes('eager') ? EAGER_MS : pause): void {
    this.stopAsking();
    if (this.isEnabled) {
      this.edited = { at: Date.now(), pause };
      this.timer = setTimeout(() => this.askAnew(), wait);
    }
  }

  private moved(): void {
    this.show();
    const editor = vscode.window.activeTextEditor;
    if (editor !== undefined && isSame(lineOf(editor), this.restedIn)) {
      return;
    }
    if (this.asking !== undefined && this.asking === this.askingAtRest) {
      this.stopAsking();
    }
    this.restSoon();
  }

  private restSoon(): void {
    clearTimeout(this.rests);
    if (this.around.wishes('atRest') && Date.now() - this.changedAt < FRESH_MS) {
      const isFirst = this.restedAt < this.changedAt;
      this.rests = setTimeout(() => this.atRest(), isFirst ? FIRST_REST_MS : REST_MS);
    }
  }

  /** The line in which somebody rests is asked about once, unless it is the one that was changed last. */
  private atRest(): void {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined || this.changedLine === undefined || !editor.selection.isEmpty) {
      return;
    }
    const here = lineOf(editor);
    if (this.offer?.isPlace === false && this.offer.edits.some((edit) => edit.uri === here.uri)) {
      return;
    }
    const { uri, line: changed } = this.changedLine;
    if (this.asking !== undefined || this.isTyping) {
      this.restSoon();
    } else if (this.isEnabled && (uri !== here.uri || here.line !== changed) && !isSame(here, this.restedIn)) {
      void this.ask(AUTOMATIC, true);
      if (this.asking !== undefined) {
        this.askingAtRest = this.asking;
        this.restedIn = here;
        this.restedAt = Date.now();
      }
    }
  }

  private get isEnabled(): boolean {
    return vscode.workspace.getConfiguration('mercury-ls').get('nextEdit.enabled', true);
  }

  private get isTyping(): boolean {
    return Date.now() - this.changedAt < WRITTEN_MS;
  }

  private stopAsking(): void {
    clearTimeout(this.timer);
    this.asking?.cancel();
    if (this.asking !== undefined && this.asking === this.askingAtRest) {
      this.restedIn = undefined; // nobody has heard what the model makes of it
      this.restSoon();
    }
    this.asking = undefined;
  }

  private askAnew(): void {
    this.stopAsking();
    void this.ask();
  }

  private async ask(triggerKind = AUTOMATIC, rests = false): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const client = this.around.connection().running;
    if (!client || !editor || editor.selections.length > 1 || this.around.silence(editor.document)) {
      return;
    }
    const mine = new vscode.CancellationTokenSource();
    this.asking = mine;
    const renameProvider = await this.renames.provider(editor.document);
    if (this.asking !== mine) {
      return;
    }
    const typing = this.isTyping;
    const params = {
      textDocument: { uri: client.code2ProtocolConverter.asUri(editor.document.uri), version: editor.document.version },
      position: client.code2ProtocolConverter.asPosition(editor.selection.active),
      context: { triggerKind, closedFiles: true, renameProvider, places: true, typing, rests },
    };
    const answer = await client.sendRequest<Answer | null>('mercury/nextEdit', params, mine.token).catch(() => null);
    if (answer) {
      const pause = answer.kind === REWRITE ? PAUSE_MS : this.edited.pause;
      await after(Math.max(this.edited.at + pause - Date.now(), 0));
    }
    if (this.asking === mine) {
      this.asking = undefined;
      if (answer || !rests) {
        this.put(answer ? offerOf(answer, editor.document.uri.toString()) : undefined);
      }
      if (typing && !answer && triggerKind === AUTOMATIC) { // something may be left for whoever has stopped
        this.timer = setTimeout(() => this.askAnew(), this.changedAt + WRITTEN_MS - Date.now());
      }
    }
  }

  private async askByHand(): Promise<void> {
    this.stopAsking();
    await this.ask(INVOKED);
    if (this.offer === undefined) {
      vscode.window.setStatusBarMessage('Mercury: there is no next edit.', MESSAGE_MS);
    }
  }

  // Showing

  private put(offer: Offer | undefined): void {
    const before = this.offer;
    this.offer = offer && offer.edits.length > 0 ? offer : undefined;
    if (before !== undefined && before.id !== this.offer?.id && before.made > 0 && this.making.length === 0) {
      this.accepted(before, before.made);
    }
    if (before !== undefined || this.offer !== undefined) {
      this.show();
    }
  }

  /** While the editor's menu is open, Tab is the menu's. */
  menu(isOpen: boolean): void {
    if (isOpen !== this.menuIsOpen) {
      this.menuIsOpen = isOpen;
      this.show();
    }
  }

  ghostChanged(): void {
    if (this.offer !== undefined) {
      this.show();
    }
  }

  private show(): void {
    const editor = vscode.window.activeTextEditor;
    const offer = this.offer;
    if (offer === undefined || editor === undefined) {
      this.decorations.clear();
      return this.allow(false, false);
    }
    const uri = editor.document.uri.toString();
    if (offer.edits.some((edit) => edit.uri === uri && this.around.hasGhost(uri, edit.range.start.line))) {
      this.decorations.clear();
      return this.allow(false, false);
    }
    if (vscode.window.visibleTextEditors.some((one) => !isIntact(one.document, offer))) {
      return this.drop();
    }
    const concerned = isAbout(offer, uri);
    vscode.window.visibleTextEditors.forEach((one) => this.draw(one, concerned && one === editor));
    this.allow(concerned, this.tabAccepts(editor));
    this.report(offer.id);
  }

  private report(id: string): void {
    if (this.shown !== id) {
      this.shown = id;
      const item = { command: { title: '', command: 'mercury.didAccept', arguments: [id] } };
      void this.around.connection().running?.sendNotification('textDocument/didShowInlineEdit', { item });
    }
  }

  private draw(editor: vscode.TextEditor, isActive: boolean): void {
    const document = editor.document;
    const tabSize = typeof editor.options.tabSize === 'number' ? editor.options.tabSize : 4;
    const lines = { count: document.lineCount, at: (row: number) => document.lineAt(row).text };
    const edits = this.offer!.isPlace ? [] : this.offer!.edits;
    const mine = edits.filter((edit) => edit.uri === document.uri.toString());
    const hint = isActive && !this.choosing ? this.hint(editor) : undefined;
    if (editor === vscode.window.activeTextEditor) {
      this.decorations.say(hint?.text);
    }
    this.decorations.show(editor, mine.flatMap((edit) => draw(edit, lines, tabSize)), hint);
  }

  /** What will change is said before it is made, wherever the eye does not tell all of it or a key is not Tab. */
  private hint(editor: vscode.TextEditor): { line: number; text: string } | undefined {
    const line = editor.selection.active.line;
    const { edits, note, isPlace } = this.offer!;
    const byTab = !this.menuIsOpen && this.tabAccepts(editor);
    if (edits.every(isInSight) && !note && byTab && !isPlace) {
      return undefined;
    }
    if (this.around.hasGhost(editor.document.uri.toString(), line)) {
      return undefined;
    }
    return { line, text: shortened(`${this.direction(editor)} (${byTab ? 'Tab' : KEY})${note && ` · ${note}`}`) };
  }

  private direction(editor: vscode.TextEditor): string {
    const target = this.target(editor);
    const at = target.range.start.line;
    const uri = editor.document.uri.toString();
    const elsewhere = target.uri !== uri;
    const line = editor.selection.active.line;
    const isHere = !elsewhere && at === line;
    const arrow = elsewhere ? '→ ' : isHere ? '' : at > line ? '↓ ' : '↑ ';
    const { edits, summary, from, made } = this.offer!;
    if (edits.length > 1 && summary && from === uri && made === 0) {
      return `${arrow}next edits: ${summary}`;
    }
    const place = elsewhere ? `${path.posix.basename(vscode.Uri.parse(target.uri).path)}:${at + 1}` : `line ${at + 1}`;
    return `${arrow}${this.offer!.isPlace ? this.offer!.label : 'next edit'}: ${isHere ? 'here' : place}`;
  }

  private allow(shown: boolean, byTab: boolean): void {
    this.isShown = shown;
    void vscode.commands.executeCommand('setContext', 'mercury-ls.nextEdit', shown);
    void vscode.commands.executeCommand('setContext', 'mercury-ls.nextEditByTab', shown && byTab);
  }

  private target(editor: vscode.TextEditor): Edit {
    return nearest(this.offer!.edits, editor.document.uri.toString(), editor.selection.active.line);
  }

  private hasArrived(editor: vscode.TextEditor): boolean {
    return this.arrived !== undefined && this.arrived.isEqual(editor.selection.active);
  }

  /** Tab is for indenting where only white space is before the cursor, unless an edit is shown in that very line. */
  private tabAccepts(editor: vscode.TextEditor): boolean {
    const { line, character } = editor.selection.active;
    const text = editor.document.lineAt(line).text;
    const indents = text.slice(0, character).trim() === '';
    return !indents || this.hasArrived(editor) || (text.trim() !== '' && this.isIn(editor, line));
  }

  private isIn(editor: vscode.TextEditor, line: number): boolean {
    const uri = editor.document.uri.toString();
    const edits = this.offer?.isPlace === false ? this.offer.edits : [];
    return edits.some(({ uri: file, range: { start, end } }) => {
      const last = end.character === 0 && end.line > start.line ? end.line - 1 : end.line;
      return file === uri && start.line <= line && line <= last;
    });
  }

  // Accepting

  /** A key comes before the editor has heard where the cursor is by now: what it meant is looked at once more. */
  async tab(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const concerned = editor && this.offer && isAbout(this.offer, editor.document.uri.toString());
    if (concerned && this.tabAccepts(editor)) {
      await this.accept('all');
    } else {
      await vscode.commands.executeCommand('tab');
    }
  }

  /**
   * Of several edits, some out of sight, all are listed first. A single one is gone to where it is away from the cursor;
   * what is near and in sight is made.
   */
  async accept(part: 'all' | 'one'): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    if (editor === undefined || this.offer === undefined || !this.isShown) {
      return part === 'all' ? this.askByHand() : undefined;
    }
    const { edits } = this.offer;
    const target = this.target(editor);
    if (part === 'all' && edits.length > 1 && !edits.every(isInSight)) {
      await this.preview();
    } else if (isNear(editor, target) && !this.offer.isPlace) {
      const wanted = part === 'all' ? edits : [target];
      if (await this.make(wanted)) {
        this.moveBehind(target, wanted);
      }
    } else if (await this.load([target])) {
      await this.jump(target);
    }
  }

  /** All edits as a list, of which single ones can be left out. */
  async preview(): Promise<void> {
    const offer = this.offer;
    const editor = vscode.window.activeTextEditor;
    if (offer === undefined || editor === undefined || this.choosing || !(await this.load(offer.edits))) {
      return;
    }
    if (offer.isPlace) {
      return this.jump(this.target(editor));
    }
    this.choosing = true;
    const chosen = await choose(offer.edits, offer.summary || offer.label, offer.note, this.decorations);
    this.choosing = false;
    await vscode.window.showTextDocument(editor.document, { viewColumn: editor.viewColumn });
    const now = this.offer;
    if (chosen !== undefined && now?.id === offer.id && now.edits.length === offer.edits.length) {
      const wanted = now.edits.filter((_, index) => chosen.includes(index));
      if (wanted.length === 0) {
        this.dismiss();
      } else if (await this.make(wanted)) {
        this.clear();
        this.askSoon(PAUSE_MS);
      }
    }
    this.show();
  }

  private async jump(target: Edit): Promise<void> {
    const start = rangeOf(target.range).start;
    const document = await vscode.workspace.openTextDocument(vscode.Uri.parse(target.uri));
    this.arrived = start;
    const editor = await vscode.window.showTextDocument(document, { selection: new vscode.Range(start, start) });
    editor.revealRange(rangeOf(target.range), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    if (this.offer?.isPlace) {
      this.accepted(this.offer, 1);
      this.put(undefined);
      this.askSoon(PAUSE_MS);
    }
    this.show();
  }

  /** Exactly what was shown, or nothing: a text that is not as it was is left alone. */
  private async make(edits: readonly Edit[]): Promise<boolean> {
    if (!(await this.load(edits))) {
      return false;
    }
    const change = new vscode.WorkspaceEdit();
    for (const edit of edits) {
      change.replace(vscode.Uri.parse(edit.uri), rangeOf(edit.range), edit.text);
    }
    const offer = this.offer!;
    this.making = edits;
    const isRefactoring = new Set(edits.map((edit) => edit.uri)).size > 1;  // what a rename changes, the editor saves
    const isMade = await vscode.workspace.applyEdit(change, { isRefactoring }).then(undefined, () => false);
    this.making = [];
    const made = offer.made + edits.length;
    if (isMade && this.offer?.id === offer.id) {
      this.offer = { ...this.offer, made };
      this.show();
    } else if (isMade) {
      this.accepted(offer, made);
      this.askSoon(PAUSE_MS);
    }
    return isMade;
  }

  /** Whether all files are there and as the edits expect them; otherwise the offer goes, and the user hears why. */
  private async load(edits: readonly Edit[]): Promise<boolean> {
    const uris = [...new Set(edits.map((edit) => edit.uri))];
    const opened = await Promise.all(uris.map((uri) => vscode.workspace.openTextDocument(vscode.Uri.parse(uri)))).catch(
      () => undefined,
    );
    const offer = this.offer;
    if (offer !== undefined && opened?.every((document) => isIntact(document, offer))) {
      return true;
    }
    this.drop();
    return false;
  }

  private drop(): void {
    this.clear();
    vscode.window.setStatusBarMessage('Mercury: a file has changed, so its next edits were dropped.', MESSAGE_MS);
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

  private accepted(offer: Offer, made: number): void {
    const all = made === offer.made + offer.edits.length;
    const told = all ? { id: offer.id } : { id: offer.id, edits: made };
    void this.around.connection().running?.sendNotification('mercury/didAccept', told);
  }

  dismiss(): void {
    if (this.offer?.made === 0) {
      void this.around.connection().running?.sendNotification('mercury/didReject', { id: this.offer.id });
    }
    this.clear();
  }
}

function lineOf(editor: vscode.TextEditor): Line {
  const { document, selection } = editor;
  return { uri: document.uri.toString(), line: selection.active.line, version: document.version };
}

function isSame(one: Line, other: Line | undefined): boolean {
  return one.uri === other?.uri && one.line === other.line && one.version === other.version;
}

/** The offer that an answer makes; undefined unless every text is the one that its edits are for. */
function offerOf(answer: Answer, from: string): Offer | undefined {
  const edits: Edit[] = [];
  for (const { textDocument, range, oldText, newText, display } of answer.edits) {
    const document = documentOf(textDocument.uri);
    if (textDocument.version !== null && document?.version !== textDocument.version) {
      return undefined;
    }
    const uri = vscode.Uri.parse(textDocument.uri).toString();
    const removed = plain(oldText ?? document?.getText(rangeOf(range)) ?? '');
    edits.push({ uri, range, text: plain(newText), removed, display });
  }
  const { id, label, summary = '', note = '' } = answer;
  const offer = { id, label, summary, note, from, isPlace: answer.kind === PLACE, edits, made: 0 };
  return vscode.workspace.textDocuments.every((document) => isIntact(document, offer)) ? offer : undefined;
}

function documentOf(uri: string): vscode.TextDocument | undefined {
  const wanted = vscode.Uri.parse(uri).toString();
  return vscode.workspace.textDocuments.find((document) => document.uri.toString() === wanted);
}

/** Whether a document holds what the edits in it take the place of. */
function isIntact(document: vscode.TextDocument, offer: Offer): boolean {
  const uri = document.uri.toString();
  const mine = offer.edits.filter((edit) => edit.uri === uri);
  return mine.every((edit) => plain(document.getText(rangeOf(edit.range))) === edit.removed);
}

/**
 * The offer in the text as it is after an event, without the edits that are being made: editors may insert before and after
 * a text instead of replacing it. Undefined where the text went elsewhere.
 */
function moved(offer: Offer, event: vscode.TextDocumentChangeEvent, making: readonly Edit[]): Offer | undefined {
  const uri = event.document.uri.toString();
  const left = offer.edits.filter((edit) => edit.uri === uri && !making.includes(edit));
  const here = follow(left, event.contentChanges);
  const elsewhere = offer.edits.filter((edit) => edit.uri !== uri);
  return here && { ...offer, edits: [...here, ...elsewhere] };
}

function isInSight(edit: Edit): boolean {
  return vscode.window.visibleTextEditors.some((editor) => shows(editor, edit));
}

function shows(editor: vscode.TextEditor, edit: Edit): boolean {
  const row = edit.range.start.line;
  const here = edit.uri === editor.document.uri.toString();
  return here && editor.visibleRanges.some((range) => row >= range.start.line && row <= range.end.line);
}

function isNear(editor: vscode.TextEditor, edit: Edit): boolean {
  const row = editor.selection.active.line;
  const { start, end } = edit.range;
  return shows(editor, edit) && row >= start.line - NEAR && row <= end.line + NEAR;
}

/** Whether somebody in this document would expect it to be offered. */
function isAbout(offer: Offer, uri: string): boolean {
  return offer.made > 0 || offer.from === uri || offer.edits.some((edit) => edit.uri === uri);
}

/** What fits beside usual code before the minimap; the list of all edits says the rest. */
function shortened(hint: string): string {
  return hint.length <= LONGEST_HINT ? hint : `${hint.slice(0, LONGEST_HINT - 1).trimEnd()}…`;
}
