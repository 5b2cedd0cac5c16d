/** What the server is told of a completion list. Pure. */

export interface Snippet {
  readonly value: string;
}

/** A completion item as far as it matters here; `kind` counts from 0, LSP's from 1. */
export interface Item {
  readonly label: string | { readonly label: string };
  readonly kind?: number;
  readonly filterText?: string;
  readonly insertText?: string | Snippet;
  readonly additionalTextEdits?: readonly unknown[];
}

export interface Named {
  readonly name: string;
  readonly kind?: number;
}

export interface Names {
  readonly items: readonly Named[];
  readonly isIncomplete: boolean;
}

const TEXT = 0;
const NO_NAMES = [TEXT, 13, 14];  // 13: keywords, 14: snippets
const MOST = 1024;
const LONGEST = 100;

/** What needs an import first is the name of something elsewhere; who lists words or too much does not list all. */
export function names(items: readonly Item[], isIncomplete: boolean): Names {
  const here = items.filter((item) => item.kind !== TEXT && !item.additionalTextEdits?.length);
  const named = here.filter((item) => !NO_NAMES.includes(item.kind ?? -1) && inserted(item).length <= LONGEST);
  return {
    items: named.slice(0, MOST).map(told),
    isIncomplete: isIncomplete || here.length < items.length || named.length > MOST,
  };
}

function told(item: Item): Named {
  return { name: inserted(item), ...(item.kind === undefined ? {} : { kind: item.kind + 1 }) };
}

/** The first line of it; whoever does not say inserts the label. */
function inserted({ label, filterText, insertText }: Item): string {
  const given = typeof insertText === 'object' ? insertText.value : insertText;
  return (given ?? filterText ?? (typeof label === 'string' ? label : label.label)).split('\n', 1)[0]!;
}
