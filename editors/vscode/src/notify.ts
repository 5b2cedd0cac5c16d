/** Notifications: the one place that shows them, and none has a link. */

import * as vscode from 'vscode';
import { unlinked } from './links.ts';

export function inform(text: string, ...choices: string[]): Thenable<string | undefined> {
  return vscode.window.showInformationMessage(unlinked(text), ...choices);
}

export function warn(text: string, ...choices: string[]): Thenable<string | undefined> {
  return vscode.window.showWarningMessage(unlinked(text), ...choices);
}

export function complain(text: string, ...choices: string[]): Thenable<string | undefined> {
  return vscode.window.showErrorMessage(unlinked(text), ...choices);
}

/** A dialog that waits for an answer; its detail is shown as it is. */
export function ask(text: string, detail: string, ...choices: string[]): Thenable<string | undefined> {
  return vscode.window.showWarningMessage(unlinked(text), { modal: true, detail }, ...choices);
}
