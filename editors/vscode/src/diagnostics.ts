/** What other language servers report goes to ours: next-edit models are told of it. */

import * as vscode from 'vscode';
import type { Connection } from './client.ts';

const MOST = 50;
const PAUSE_MS = 100;

export class Diagnostics {
  private readonly connection: () => Connection;
  private readonly waiting = new Map<string, NodeJS.Timeout>();
  private readonly subscription: vscode.Disposable;

  constructor(connection: () => Connection) {
    this.connection = connection;
    this.subscription = vscode.languages.onDidChangeDiagnostics((event) => event.uris.forEach((uri) => this.changed(uri)));
  }

  dispose(): void {
    this.subscription.dispose();
    this.waiting.forEach((timer) => clearTimeout(timer));
  }

  private changed(uri: vscode.Uri): void {
    const key = uri.toString();
    clearTimeout(this.waiting.get(key));
    this.waiting.set(key, setTimeout(() => this.tell(uri), PAUSE_MS));
  }

  private tell(uri: vscode.Uri): void {
    this.waiting.delete(uri.toString());
    const client = this.connection().running;
    const document = vscode.workspace.textDocuments.find((one) => one.uri.toString() === uri.toString());
    if (client === undefined || document === undefined) {
      return;
    }
    const found = vscode.languages.getDiagnostics(uri).slice(0, MOST);
    void client.sendNotification('mercury/didChangeDiagnostics', {
      textDocument: { uri: client.code2ProtocolConverter.asUri(uri), version: document.version },
      diagnostics: found.map((one) => client.code2ProtocolConverter.asDiagnostic(one)),
    });
  }
}
