/** The state of the server and its engine, and how it reads in a status bar: pure. */

/** What `mercury/didChangeStatus` tells. */
export interface Engine {
  readonly state: string;
  readonly detail: string;
  readonly progress: number | null;
  readonly engine: string;
  readonly model: string;
  readonly device: string;
  /** What there is to know of the model: where prompts go, that it is small and what to do about it. */
  readonly remarks?: readonly string[];
  /** Whether next edits are to be asked for at once. */
  readonly eager?: boolean;
  /** Whether to ask also where the user rests in another line after an edit. */
  readonly atRest?: boolean;
}

/** What `mercury/status` answers. */
export interface Metrics extends Engine {
  readonly version: string;
  readonly documents: number;
  readonly accepted: number;
  readonly rejected: number;
  readonly snoozed: boolean;
  readonly bar: number;
  readonly problems: readonly string[];
  readonly decisions: readonly string[];
  readonly today?: readonly Day[];
  readonly sent?: string;
}

/** What `mercury/why` answers; `model` is empty if there is nothing to say of it. */
export interface Why {
  readonly reason: string;
  readonly nextEdit?: string;
  readonly model?: string;
}

/** What became of the suggestions of one kind in one language on one day. */
export interface Day {
  readonly language: string;
  readonly kind: 'inline' | 'nextEdit';
  readonly shown: number;
  readonly typedThrough: number;
  readonly accepted: number;
  readonly rejected: number;
  readonly characters: number;
}

export interface State {
  readonly server: 'missing' | 'asking' | 'stopped' | 'starting' | 'running';
  readonly engine?: Engine;
  readonly snoozedUntil?: number;
  /** Why this document gets nothing, where the reason is the extension's: off for its language, Copilot's. */
  readonly silence?: string;
}

export interface Face {
  readonly text: string;
  readonly tooltip: string;
  readonly isWarning: boolean;
}

export function face(state: State, now: number): Face {
  if (state.server === 'missing') {
    return warning('The server mercury-ls was not found. Choose “Install the Server”.');
  }
  if (state.server === 'asking') {
    return warning('The server was found in this project, and needs your permission to start.');
  }
  if (state.server === 'stopped') {
    return warning('The server is not running. Check its log, then restart it.');
  }
  const engine = state.engine;
  if (state.server === 'starting' || engine === undefined) {
    return { text: '$(loading~spin) Mercury', tooltip: 'The server is starting.', isWarning: false };
  }
  if (engine.state === 'unavailable') {
    return warning(`No engine: ${engine.detail || 'no reason given'}`);
  }
  if (engine.state !== 'ready') {
    const progress = engine.progress === null ? '' : ` (${Math.round(engine.progress * 100)} %)`;
    const tooltip = `The engine is ${engine.state}${progress}. ${engine.detail}`.trim();
    return { text: '$(loading~spin) Mercury', tooltip, isWarning: false };
  }
  if (state.snoozedUntil !== undefined && state.snoozedUntil > now) {
    const minutes = Math.ceil((state.snoozedUntil - now) / 60_000);
    return { text: '$(bell-slash) Mercury', tooltip: `Snoozed for another ${minutes} min.`, isWarning: false };
  }
  if (state.silence) {
    return { text: '$(circle-slash) Mercury', tooltip: `Silent here: ${state.silence}.`, isWarning: false };
  }
  const where = [engine.model, engine.device].filter(Boolean).join(', ');
  const tooltip = ['Ready: ' + (where || engine.engine), ...(engine.remarks ?? [])].join('; ') + '.';
  return { text: '$(sparkle) Mercury', tooltip, isWarning: false };
}

function warning(tooltip: string): Face {
  return { text: '$(warning) Mercury', tooltip, isWarning: true };
}

/** What “Show Metrics” shows: plain lines, the last decisions first. */
export function page(metrics: Metrics): string {
  const rows: [string, string][] = [
    ['server', metrics.version],
    ['engine', [metrics.state, metrics.engine, metrics.model, metrics.device].filter(Boolean).join(', ')],
    ['because', metrics.detail],
    ['model', (metrics.remarks ?? []).join('; ')],
    ['sent last', metrics.sent ?? ''],
    ['documents', String(metrics.documents)],
    ['accepted', String(metrics.accepted)],
    ['rejected', String(metrics.rejected)],
    ['shown from', `${Math.round(metrics.bar * 100)} % likely to be accepted`],
  ];
  const told = rows.filter(([, value]) => value !== '').map(([name, value]) => `${name.padEnd(12)}${value}`);
  const problems = metrics.problems.map((problem) => `problem     ${problem}`);
  const today = (metrics.today ?? []).map((day) => `today       ${counts(day)}`);
  return [...told, ...today, ...problems, '', 'Last decisions:', ...[...metrics.decisions].reverse()].join('\n') + '\n';
}

function counts(day: Day): string {
  const what = `${day.language}, ${day.kind === 'inline' ? 'inline' : 'next edits'}`;
  const became = `${day.typedThrough} typed through, ${day.accepted} accepted, ${day.rejected} rejected`;
  return `${what}: ${day.shown} shown, ${became}, ${day.characters} characters saved`;
}
