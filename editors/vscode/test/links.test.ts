import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { test } from 'node:test';
import { unlinked, withoutLinks } from '../src/links.ts';

/** As VS Code's own parser of notifications has it. */
const LINK = /\[([^\]]+)\]\(((?:https?:\/\/|command:|file:)[^\)\s]+)(?: (["'])(.+?)(\3))?\)/gi;
const HOSTILE = ['[Fix](command:a)', '[a][b](Command:a "t")', '[x](https://a.example)[y](file:z)', '[[a](command:b)'];

test('no link is left, and every character is', () => {
  for (const text of HOSTILE) {
    assert.match(text, new RegExp(LINK));
    assert.doesNotMatch(unlinked(text), new RegExp(LINK));
    assert.equal(unlinked(text).replaceAll('\\', ''), text);
  }
});

test('messages and errors of a server have no links, and nothing else of it changes', () => {
  const [link, broken] = [HOSTILE[0], '[Fix]\\(command:a)'];
  for (const method of ['window/showMessage', 'window/showMessageRequest']) {
    assert.deepEqual(withoutLinks({ method, params: { type: 1, message: link } }), { method, params: { type: 1, message: broken } });
  }
  const error = { code: -32603, message: link };
  assert.deepEqual(withoutLinks({ id: 1, error }), { id: 1, error: { code: -32603, message: broken } });
  const answer = { id: 1, result: { newText: link } };
  assert.equal(withoutLinks(answer), answer);
});

test('only one file shows notifications', () => {
  const source = new URL('../src/', import.meta.url);
  const showing = readdirSync(source).filter((name) => /\bshow\w+Message\b/.test(readFileSync(new URL(name, source), 'utf8')));
  assert.deepEqual(showing, ['notify.ts']);
});
