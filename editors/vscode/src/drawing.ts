/** How edits look without an editor's own diff: what goes is struck, what comes stands beside it. Pure. */

import { type Edit, type Range, isEmpty } from './edits.ts';

/** `block` stands right of the code, `gap` columns behind the end of its line; `added` and `ghost` within the line. */
export interface Mark {
  readonly kind: 'removed' | 'added' | 'ghost' | 'block';
  readonly range: Range;
  readonly text: string;
  readonly gap: number;
}

/** The lines of a document, of which only a few are looked at. */
export interface Lines {
  readonly count: number;
  at(row: number): string;
}

const MARGIN = 4;

export function draw(edit: Edit, lines: Lines, tabSize: number): Mark[] {
  const { start, end } = edit.range;
  if (start.line === end.line && !edit.text.includes('\n')) {
    return inLine(edit);
  }
  const prefix = lines.at(start.line).slice(0, start.character);
  const suffix = lines.at(end.line).slice(end.character);
  const inserts = isEmpty(edit.range);
  if (inserts && suffix === '' && prefix !== '') {
    const [first, ...below] = edit.text.split('\n');
    const head = first === '' ? [] : [mark(added(edit), edit.range, first)];
    return [...head, ...beside(start.line, signed(below, '↳ '), lines, tabSize)];
  }
  if (inserts && prefix === '' && edit.text.endsWith('\n')) {
    return beside(start.line, signed(edit.text.slice(0, -1).split('\n'), '↱ '), lines, tabSize);
  }
  return wholeLines(edit, (prefix + edit.text + suffix).split('\n'), lines, tabSize);
}

function inLine(edit: Edit): Mark[] {
  const gone = isEmpty(edit.range) ? [] : [mark('removed', edit.range, '')];
  const come = edit.text === '' ? [] : [mark(added(edit), { start: edit.range.end, end: edit.range.end }, edit.text)];
  return [...gone, ...come];
}

function added(edit: Edit): 'ghost' | 'added' {
  return edit.display === 'ghost' ? 'ghost' : 'added';
}

function mark(kind: Mark['kind'], range: Range, text: string, gap = 0): Mark {
  return { kind, range, text, gap };
}

function signed(texts: readonly string[], sign: string): string[] {
  return texts.map((text, index) => (index === 0 ? sign : ' '.repeat(sign.length)) + text);
}

/** The old lines are struck, the new ones stand beside them; a last line that stays is no part of either. */
function wholeLines(edit: Edit, texts: string[], lines: Lines, tabSize: number): Mark[] {
  let last = edit.range.end.line;
  if (edit.range.end.character === 0 && last > edit.range.start.line && texts[texts.length - 1] === lines.at(last)) {
    texts.pop();
    last -= 1;
  }
  const gone: Mark[] = [];
  for (let row = edit.range.start.line; row <= last; row += 1) {
    const range = { start: { line: row, character: 0 }, end: { line: row, character: lines.at(row).length } };
    gone.push(mark('removed', range, ''));
  }
  return [...gone, ...beside(edit.range.start.line, texts, lines, tabSize)];
}

/** One text a line from `row` on, in a column that no code reaches; higher up where the document ends too soon. */
function beside(row: number, texts: readonly string[], lines: Lines, tabSize: number): Mark[] {
  const expanded = texts.map((text) => expand(text, tabSize));
  const fitting = texts.length <= lines.count ? expanded : folded(expanded, lines.count);
  const first = Math.max(0, Math.min(row, lines.count - fitting.length));
  const widths = fitting.map((_, index) => width(lines.at(first + index), tabSize));
  const column = Math.max(...widths) + MARGIN;
  const widest = Math.max(...fitting.map((text) => width(text, tabSize)));
  return fitting.map((text, index) => {
    const end = { line: first + index, character: lines.at(first + index).length };
    const padded = text + ' '.repeat(widest - width(text, tabSize));
    return mark('block', { start: end, end }, padded, column - widths[index]);
  });
}

/** In a document of few lines the last one shows all that is left. */
function folded(texts: readonly string[], count: number): string[] {
  return [...texts.slice(0, count - 1), texts.slice(count - 1).join(' ⏎ ')];
}

function expand(text: string, tabSize: number): string {
  let out = '';
  for (const character of text) {
    out += character === '\t' ? ' '.repeat(tabSize - (width(out, tabSize) % tabSize)) : character;
  }
  return out;
}

const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/u;

/** Columns that a text takes on the screen. */
export function width(text: string, tabSize: number): number {
  let columns = 0;
  for (const character of text) {
    columns += character === '\t' ? tabSize - (columns % tabSize) : WIDE.test(character) ? 2 : 1;
  }
  return columns;
}
