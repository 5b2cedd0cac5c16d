/** Next edits by the editor's own inline edits, where it lets an extension: a proposed API, found out by trying. */

import * as vscode from 'vscode';
import { rangeOf } from './decorations.ts';
import type { Edit } from './edits.ts';

/** What the proposal adds to the stable interface, as far as it is used here. */
interface InlineEdit extends vscode.InlineCompletionItem {
  isInlineEdit: boolean;
  showRange: vscode.Range;
}

interface Provider extends vscode.InlineCompletionItemProvider {
  handleEndOfLifetime(item: vscode.InlineCompletionItem, reason: { kind: number }): void;
}

type Register = (
  selector: vscode.DocumentSelector,
  provider: Provider,
  metadata: { displayName: string; groupId: string },
) => vscode.Disposable;

const REJECTED = 1;

export interface Source {
  /** The edit that is next in this document, and the offer that it is of, once the server has answered. */
  next(document: vscode.TextDocument, position: vscode.Position): Promise<{ id: string; edit: Edit } | undefined>;
  refused(id: string): void;
}

/** Undefined where the editor keeps the proposal from us. */
export function register(selector: vscode.DocumentSelector, source: Source): vscode.Disposable | undefined {
  const registered = vscode.languages.registerInlineCompletionItemProvider as unknown as Register;
  try {
    return registered(selector, provider(source), { displayName: 'Mercury', groupId: 'mercury-ls.next-edit' });
  } catch {
    return undefined;
  }
}

/** It asks once for a text and a place, and again only when these change: so the answer is waited for. */
function provider(source: Source): Provider {
  const ids = new WeakMap<vscode.InlineCompletionItem, string>();
  return {
    async provideInlineCompletionItems(document, position, _context, token) {
      const next = await source.next(document, position);
      if (next === undefined || token.isCancellationRequested) {
        return [];
      }
      const item = new vscode.InlineCompletionItem(next.edit.text, rangeOf(next.edit.range)) as InlineEdit;
      item.isInlineEdit = true;
      item.showRange = item.range!;
      item.command = { title: '', command: 'mercury-ls.tookNextEdit', arguments: [next.id] };
      ids.set(item, next.id);
      return [item];
    },
    handleEndOfLifetime(item, reason) {
      const id = ids.get(item);
      if (id !== undefined && reason.kind === REJECTED) {
        source.refused(id);
      }
    },
  };
}
