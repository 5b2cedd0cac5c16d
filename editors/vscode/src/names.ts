/** Which names the user's other language servers know at a place: our server asks, once for each place. */

import { setTimeout as after } from 'node:timers/promises';
import * as vscode from 'vscode';
import { type LanguageClient, LSPErrorCodes, type Position, ResponseError } from 'vscode-languageclient/node';
import { type Names, names } from './listed.ts';

export interface Asked {
  readonly textDocument: { readonly uri: string; readonly version: number };
  readonly position: Position;
  readonly timeoutMs: number;
}

/** Null where the text has changed since. Where our suggestions are in the menu, its providers would ask us. */
export async function answer(client: LanguageClient, asked: Asked): Promise<Names | null> {
  const { uri, version } = asked.textDocument;
  const document = vscode.workspace.textDocuments.find((one) => client.code2ProtocolConverter.asUri(one.uri) === uri);
  if (document?.version !== version) {
    return null;
  }
  if (client.initializeResult?.capabilities.completionProvider) {
    return names([], true);
  }
  const place = client.protocol2CodeConverter.asPosition(asked.position);
  const found = await Promise.race([listed(document.uri, place), after(asked.timeoutMs, undefined, { ref: false })]);
  if (found === undefined) {
    throw new ResponseError(LSPErrorCodes.RequestFailed, `nobody answered within ${asked.timeoutMs} ms`);
  }
  return found;
}

async function listed(...place: [vscode.Uri, vscode.Position]): Promise<Names> {
  const command = 'vscode.executeCompletionItemProvider';
  const list = await vscode.commands.executeCommand<vscode.CompletionList | undefined>(command, ...place);
  return names(list?.items ?? [], list?.isIncomplete ?? true);
}
