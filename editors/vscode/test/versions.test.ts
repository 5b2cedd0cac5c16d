import assert from 'node:assert/strict';
import { test } from 'node:test';
import { complaint, isOlder } from '../src/versions.ts';

test('only versions that do not fit are older', () => {
  assert.ok(isOlder('0.9.9', '0.10.0'));
  assert.ok(isOlder('0.1.0', '1.0.0'));
  assert.ok(!isOlder('0.10.0', '0.9.0'));
  assert.ok(!isOlder('0.1.0', '0.1.5'));
  assert.ok(!isOlder('newest', '0.1.0'));
});

test('an older server is named with both versions, and nothing is said of others', () => {
  assert.match(complaint('0.0.9', '0.1.0') ?? '', /server is 0\.0\.9, and this extension 0\.1\.0: update the server/);
  assert.equal(complaint('0.2.0', '0.1.0'), undefined);
  assert.equal(complaint(undefined, '0.1.0'), undefined);
});
