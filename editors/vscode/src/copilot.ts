/** Whether GitHub Copilot suggests in a document too: nothing is ever suggested twice. Pure. */

export const COPILOTS = ['GitHub.copilot', 'GitHub.copilot-chat'];

/** What it says of itself; `enable` is `github.copilot.enable`, in which `*` stands for all languages not named. */
export interface Copilot {
  readonly active: boolean;
  /** Editors come with it: without an account it suggests nothing. */
  readonly signedIn: boolean;
  readonly enable: Readonly<Record<string, boolean>>;
  readonly aiDisabled: boolean;
}

export function speaks(copilot: Copilot, language: string): boolean {
  return copilot.active && copilot.signedIn && !copilot.aiDisabled && (copilot.enable[language] ?? copilot.enable['*'] ?? true);
}

/** The same table with nothing enabled. */
export function silenced(enable: Copilot['enable']): Record<string, boolean> {
  return Object.fromEntries(['*', ...Object.keys(enable)].map((language) => [language, false]));
}
