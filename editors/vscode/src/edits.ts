/** The edits of an offer, and where they are when the text under them has changed: pure, in LSP's positions. */

/** Characters of both lines for which a list has room, and of what they share before the change in longer ones. */
const LONGEST_PAIR = 88;
const SHARED_SHOWN = 16;

export interface Position {
  readonly line: number;
  readonly character: number;
}

export interface Range {
  readonly start: Position;
  readonly end: Position;
}

export interface Change {
  readonly range: Range;
  readonly text: string;
}

/** `removed` is the text in the range, which `text` takes the place of. */
export interface Edit extends Change {
  readonly uri: string;
  readonly removed: string;
  readonly display: 'ghost' | 'diff';
}

export function compare(a: Position, b: Position): number {
  return a.line - b.line || a.character - b.character;
}

export function isEmpty(range: Range): boolean {
  return compare(range.start, range.end) === 0;
}

/** The place behind `text` when it begins at `start`. */
export function endOf(start: Position, text: string): Position {
  const lines = text.split('\n');
  const last = lines[lines.length - 1].length;
  return { line: start.line + lines.length - 1, character: lines.length === 1 ? start.character + last : last };
}

/**
 * The edits of one document after one event of its changes, without those that it has made; undefined where it went
 * elsewhere. The changes are in the order of the event: each is in the text that the one before it has left.
 */
export function follow(edits: readonly Edit[], changes: readonly Change[]): Edit[] | undefined {
  let moved = edits.map((edit) => ({ edit, touched: false }));
  for (const change of changes) {
    for (const one of moved) {
      const edit = touched(one.edit, change) ?? shifted(one.edit, change);
      if (edit === undefined) {
        return undefined;
      }
      one.touched ||= edit.removed !== one.edit.removed;
      one.edit = edit;
    }
    moved = moved.filter((one) => one.edit.removed !== one.edit.text);
  }
  return moved.some((one) => one.touched) ? undefined : moved.map((one) => one.edit);
}

/** The edit with the change made in its text, where it was made in there; at its borders only if that completes it. */
function touched(edit: Edit, change: Change): Edit | undefined {
  const { start, end } = edit.range;
  if (compare(change.range.start, start) < 0 || compare(change.range.end, end) > 0) {
    return undefined;
  }
  const [from, to] = [offset(edit, change.range.start), offset(edit, change.range.end)];
  const removed = edit.removed.slice(0, from) + plain(change.text) + edit.removed.slice(to);
  const inside = compare(change.range.end, start) > 0 && compare(change.range.start, end) < 0;
  return inside || removed === edit.text ? { ...edit, removed, range: { start, end: endOf(start, removed) } } : undefined;
}

function shifted(edit: Edit, change: Change): Edit | undefined {
  if (isEmpty(edit.range) && isEmpty(change.range) && compare(edit.range.start, change.range.start) === 0) {
    return undefined;
  }
  if (compare(change.range.end, edit.range.start) <= 0) {
    const range = { start: behind(edit.range.start, change), end: behind(edit.range.end, change) };
    return { ...edit, range };
  }
  return compare(change.range.start, edit.range.end) >= 0 ? edit : undefined;
}

function behind(position: Position, change: Change): Position {
  const { start, end } = change.range;
  const now = endOf(start, plain(change.text));
  const character = position.line === end.line ? now.character + position.character - end.character : position.character;
  return { line: now.line + position.line - end.line, character };
}

function offset(edit: Edit, position: Position): number {
  const lines = edit.removed.split('\n');
  const above = position.line - edit.range.start.line;
  const full = lines.slice(0, above).reduce((sum, line) => sum + line.length + 1, 0);
  return full + position.character - (above === 0 ? edit.range.start.character : 0);
}

/** Line ends as LSP's servers send them; editors put their own in their place. */
export function plain(text: string): string {
  return text.replace(/\r\n?/g, '\n');
}

/** The edit that is next: the nearest in this document, otherwise the first. */
export function nearest(edits: readonly Edit[], uri: string, line: number): Edit {
  const away = (edit: Edit) => (edit.uri === uri ? Math.abs(edit.range.start.line - line) : Infinity);
  return edits.reduce((best, edit) => (away(edit) < away(best) ? edit : best));
}

/** The edit as one line of a list: the line before and after, or their first lines. */
export function oneLine(edit: Edit, lineAt: (row: number) => { readonly text: string }): string {
  const { start, end } = edit.range;
  const before = lineAt(start.line).text;
  const removed = start.line === end.line ? before.slice(end.character) : '';
  const [first, ...more] = (before.slice(0, start.character) + edit.text + removed).split('\n').map((line) => line.trim());
  const [from, to] = fromChange(before.trim(), [first, ...(more.length > 0 ? ['…'] : [])].join(' '));
  return from === '' ? `+ ${to}` : to === '' ? `− ${from}` : `${from}  →  ${to}`;
}

/** Two long lines without most of the beginning that they share, behind which nobody would see what changes. */
function fromChange(before: string, after: string): [string, string] {
  const [old, changed] = [[...before], [...after]];
  const cut = old.findIndex((character, at) => character !== changed[at]) - SHARED_SHOWN;
  if (old.length + changed.length <= LONGEST_PAIR || cut <= 0) return [before, after];
  return [`…${old.slice(cut).join('')}`, `…${changed.slice(cut).join('')}`];
}

/** How much of a suggestion for `start` stands in the text up to the cursor: what was accepted in part. */
export function accepted(insertText: string, typed: string): number {
  return plain(insertText).startsWith(plain(typed)) ? plain(typed).length : 0;
}
