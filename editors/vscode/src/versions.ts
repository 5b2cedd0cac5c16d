/** Whether the server is too old for this extension; a server that is newer than it says so itself. Pure. */

export function complaint(server: string | undefined, extension: string): string | undefined {
  if (server === undefined || !isOlder(server, extension)) {
    return undefined;
  }
  return `The server is ${server}, and this extension ${extension}: update the server, for example with \`uv tool upgrade mercury-ls\`.`;
}

/** By the first two numbers, which say whether they fit; false for what is no version. */
export function isOlder(version: string, other: string): boolean {
  const [first, second] = [version, other].map((text) => /^(\d+)\.(\d+)/.exec(text)?.slice(1).map(Number));
  if (first === undefined || second === undefined) {
    return false;
  }
  return first[0] < second[0] || (first[0] === second[0] && first[1] < second[1]);
}
