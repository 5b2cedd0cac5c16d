import assert from 'node:assert/strict';
import { test } from 'node:test';
import { type Item, names } from '../src/listed.ts';

const [TEXT, METHOD, FIELD, KEYWORD, SNIPPET] = [0, 1, 4, 13, 14];

function check(items: Item[], expected: object[], isIncomplete = false) {
  assert.deepEqual(names(items, false), { items: expected, isIncomplete });
}

test('an item is what it inserts, with its kind as LSP counts them', () => {
  check([{ label: 'plain', kind: FIELD }], [{ name: 'plain', kind: 5 }]);
  check([{ label: 'a(…)', filterText: 'a', insertText: { value: 'b($0)' }, kind: METHOD }], [{ name: 'b($0)', kind: 2 }]);
  check([{ label: { label: 'c(…)' }, filterText: 'c' }], [{ name: 'c' }]);
  check([{ label: { label: 'd' }, insertText: 'd\nmore' }], [{ name: 'd' }]);
});

test('keywords, snippets and what is too long are no names', () => {
  const long = 'l'.repeat(200);
  check([{ label: 'for', kind: KEYWORD }, { label: 'main', kind: SNIPPET }, { label: long, kind: FIELD }], []);
});

test('words, names that are elsewhere and a list that is cut say that there may be others', () => {
  check([{ label: 'word', kind: TEXT }], [], true);
  check([{ label: 'far', kind: METHOD, additionalTextEdits: [{}] }], [], true);
  check([{ label: 'near', kind: METHOD, additionalTextEdits: [] }], [{ name: 'near', kind: 2 }]);
  const many = Array.from({ length: 2000 }, (_, index) => ({ label: `n${index}` }));
  assert.equal(names(many, false).items.length, 1024);
  assert.ok(names(many, false).isIncomplete);
  assert.ok(names([], true).isIncomplete);
});
