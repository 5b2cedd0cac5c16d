/** What the user has set of the server's settings: defaults stay the server's, and its own files stay in force. */

export interface Inspected {
  readonly globalValue?: unknown;
  readonly workspaceValue?: unknown;
  readonly workspaceFolderValue?: unknown;
}

/** `{engine: {deadlineMs: 500}}`: only what somebody has set. Tables are merged, lists add up, near values win. */
export function explicit(
  keys: readonly string[],
  inspect: (key: string) => Inspected | undefined,
): Record<string, Record<string, unknown>> {
  const found: Record<string, Record<string, unknown>> = {};
  for (const key of keys) {
    const given = inspect(key);
    const values = [given?.globalValue, given?.workspaceValue, given?.workspaceFolderValue];
    const value = values.filter((one) => one !== undefined).reduce(nearer, undefined);
    if (value !== undefined) {
      const [group, name] = key.split('.').slice(1);
      (found[group] ??= {})[name] = value;
    }
  }
  return found;
}

function nearer(far: unknown, near: unknown): unknown {
  if (Array.isArray(far) && Array.isArray(near)) {
    return [...far, ...near];
  }
  return isTable(far) && isTable(near) ? { ...far, ...near } : near;
}

function isTable(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
