import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silenced, speaks } from '../src/copilot.ts';
import { explicit } from '../src/settings.ts';
import { type Engine, type State, face, page } from '../src/state.ts';

const READY: Engine = { state: 'ready', detail: '', progress: null, engine: 'fake', model: 'copies', device: 'cpu' };

function check(state: Partial<State>, icon: string, part: string) {
  const shown = face({ server: 'running', engine: READY, ...state }, 1000);
  assert.match(shown.text, new RegExp(`\\$\\(${icon}\\) Mercury`));
  assert.ok(shown.tooltip.includes(part), shown.tooltip);
  assert.equal(shown.isWarning, icon === 'warning');
}

test('the status bar has a state and its cause', () => {
  check({}, 'sparkle', 'copies, cpu');
  check({ engine: { ...READY, remarks: ['the model is small'] } }, 'sparkle', 'cpu; the model is small.');
  check({ server: 'missing' }, 'warning', 'was not found');
  check({ server: 'asking' }, 'warning', 'in this project');
  check({ server: 'stopped', engine: undefined }, 'warning', 'not running');
  check({ server: 'starting', engine: undefined }, 'loading~spin', 'starting');
  check({ engine: { ...READY, state: 'unavailable', detail: 'no model here' } }, 'warning', 'no model here');
  check({ engine: { ...READY, state: 'loading', progress: 0.4 } }, 'loading~spin', '40 %');
  check({ snoozedUntil: 61_001 }, 'bell-slash', '2 min');
  check({ snoozedUntil: 999 }, 'sparkle', 'Ready');
  check({ silence: 'off for markdown' }, 'circle-slash', 'off for markdown');
});

test('metrics are plain lines, the last decision first', () => {
  const more = { version: '0.1', documents: 2, accepted: 3, rejected: 1, snoozed: false, bar: 0.25, problems: ['bad'] };
  const text = page({ ...READY, ...more, decisions: ['first', 'last'] });
  assert.match(text, /accepted {4}3\n/);
  assert.match(text, /shown from {2}25 %/);
  assert.ok(text.indexOf('last') < text.indexOf('first'));
  assert.ok(!text.includes('because') && !text.includes('sent last'));
  const remote = { remarks: ['prompts go to x'], sent: 'a.py to x' };
  assert.match(page({ ...READY, ...more, ...remote, decisions: [] }), /model {7}prompts go to x\nsent last {3}a\.py to x/);
  const day = { language: 'python', kind: 'nextEdit' as const, shown: 4, typedThrough: 0, accepted: 2, rejected: 1 };
  const counted = page({ ...READY, ...more, decisions: [], today: [{ ...day, characters: 70 }] });
  assert.match(counted, /today {7}python, next edits: 4 shown, 0 typed through, 2 accepted, 1 rejected, 70 characters/);
});

test('only what somebody has set is told, near values over far ones, tables merged, lists added up', () => {
  const given: Record<string, object> = {
    'mercury.engine.effort': { globalValue: 'high', workspaceValue: 'low' },
    'mercury.engine.threads': { defaultValue: 0 },
    'mercury.suggest.languages': { globalValue: { python: true }, workspaceValue: { c: false } },
    'mercury.privacy.ignore': { globalValue: ['a'], workspaceFolderValue: ['b'] },
  };
  assert.deepEqual(explicit(Object.keys(given), (key) => given[key]), {
    engine: { effort: 'low' },
    suggest: { languages: { python: true, c: false } },
    privacy: { ignore: ['a', 'b'] },
  });
});

test('Copilot speaks where it is active, signed in and on', () => {
  const copilot = { active: true, signedIn: true, enable: { '*': true, markdown: false }, aiDisabled: false };
  assert.ok(speaks(copilot, 'python'));
  assert.ok(!speaks(copilot, 'markdown'));
  assert.ok(!speaks({ ...copilot, active: false }, 'python'));
  assert.ok(!speaks({ ...copilot, signedIn: false }, 'python'));
  assert.ok(!speaks({ ...copilot, aiDisabled: true }, 'python'));
  assert.ok(!speaks({ ...copilot, enable: silenced({ ...copilot.enable, python: true }) }, 'python'));
});
