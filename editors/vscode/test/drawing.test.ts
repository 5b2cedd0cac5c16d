import assert from 'node:assert/strict';
import { test } from 'node:test';
import { draw, width } from '../src/drawing.ts';

/** Draws onto the text: `-` lines are struck, `+n` is `n` columns behind the line, `~` is ghost text. */
function check(text: string, place: [number, number, number, number], insert: string, wanted: string[], more = {}) {
  const rows = text.split('\n');
  const lines = { count: rows.length, at: (row: number) => rows[row] };
  const [line, character, endLine, endCharacter] = place;
  const range = { start: { line, character }, end: { line: endLine, character: endCharacter } };
  const marks = draw({ uri: '', range, text: insert, removed: '', display: 'diff', ...more }, lines, 4);
  const drawn = marks.map(({ kind, range: { start, end }, text: shown, gap }) => {
    const sign = { removed: '-', added: '+', ghost: '~', block: `+${gap}` }[kind];
    const told = kind === 'removed' ? rows[start.line].slice(start.character, end.character) : shown;
    return `${start.line}${sign} ${told}`;
  });
  assert.deepEqual(drawn, wanted);
}

const CODE = 'def area(w, h):\n    return w * hight\n\nprint(aera(2))\n';

test('a change in a line strikes the old and shows the new behind it', () => {
  check(CODE, [1, 15, 1, 20], 'height', ['1- hight', '1+ height']);
  check(CODE, [1, 15, 1, 20], '', ['1- hight']);
  check(CODE, [1, 20, 1, 20], '  # fixed', ['1~   # fixed'], { display: 'ghost' });
});

test('lines that come below stand beside the code, and say where they go', () => {
  check(CODE, [1, 20, 1, 20], '\n    # one\n    # two', ['1+4 ↳     # one', '2+24       # two']);
  check(CODE, [1, 20, 1, 20], ' / 2\n    # one', ['1+  / 2', '1+4 ↳     # one']);
});

test('lines that come above stand beside the line that they go before', () => {
  check(CODE, [0, 0, 0, 0], 'import os\n\n', ['0+9 ↱ import os', '1+4            ']);
});

test('changed lines are struck, and the new ones stand beside them in a column of their own', () => {
  check(CODE, [0, 8, 1, 20], '(a, b):\n    return a * b', [
    '0- def area(w, h):',
    '1-     return w * hight',
    '0+9 def area(a, b): ',
    '1+4     return a * b',
  ]);
});

test('a line that stays is no part of the change', () => {
  check(CODE, [0, 0, 1, 0], 'def area(a, b):\n', ['0- def area(w, h):', '0+4 def area(a, b):']);
});

test('at the end of a document the lines stand higher up, and in a short one the last shows all that is left', () => {
  check('one\ntwo', [1, 3, 1, 3], '\nthree\nfour', ['0+4 ↳ three', '1+4   four ']);
  check('one', [0, 3, 0, 3], '\ntwo\nthree', ['0+4 ↳ two ⏎   three']);
});

test('columns are counted as the editor shows them', () => {
  assert.equal(width('a\tb', 4), 5);
  assert.equal(width('日本', 4), 4);
  check('\tone', [0, 0, 0, 4], 'two\n\tthree', ['0- \tone', '0+4 two ⏎     three']);
});
