/** VS Code makes links of parts of its notifications, some of which run commands; texts of others have none: pure. */

/** The text with a backslash where a label would meet the address of a link. */
export function unlinked(text: string): string {
  return text.replaceAll('](', ']\\(');
}

interface Message {
  readonly method?: string;
  readonly params?: unknown;
  readonly error?: { readonly message: string };
}

/** What a server sends, without links in what the language client shows of it. */
export function withoutLinks<T extends object>(message: T & Message): T {
  if (message.method === 'window/showMessage' || message.method === 'window/showMessageRequest') {
    const params = message.params as { message: string };
    return { ...message, params: { ...params, message: unlinked(params.message) } };
  }
  return message.error ? { ...message, error: { ...message.error, message: unlinked(message.error.message) } } : message;
}
