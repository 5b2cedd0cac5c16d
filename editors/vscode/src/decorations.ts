/** Marks on the screen, by the editor's decorations, and what the status bar says of them. */

import * as vscode from 'vscode';
import type { Mark } from './drawing.ts';
import type { Range } from './edits.ts';

const BLANK = '\u00a0';

const removed = () =>
  vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor('diffEditor.removedTextBackground'),
    textDecoration: 'line-through',
    rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed,
  });

const attachment = () =>
  vscode.window.createTextEditorDecorationType({ rangeBehavior: vscode.DecorationRangeBehavior.ClosedClosed });

const STYLES: Record<Exclude<Mark['kind'], 'removed'> | 'hint', vscode.ThemableDecorationAttachmentRenderOptions> = {
  added: {
    backgroundColor: new vscode.ThemeColor('diffEditor.insertedTextBackground'),
    color: new vscode.ThemeColor('editor.foreground'),
  },
  block: {
    backgroundColor: new vscode.ThemeColor('diffEditor.insertedTextBackground'),
    color: new vscode.ThemeColor('editor.foreground'),
  },
  ghost: { color: new vscode.ThemeColor('editorGhostText.foreground'), fontStyle: 'italic' },
  hint: { color: new vscode.ThemeColor('editorCodeLens.foreground') },
};

const current = () =>
  vscode.window.createTextEditorDecorationType({
    backgroundColor: new vscode.ThemeColor('editor.rangeHighlightBackground'),
    isWholeLine: true,
  });

export class Decorations implements vscode.Disposable {
  private readonly removed = removed();
  private readonly attached = attachment();
  private readonly current = current();
  private readonly status = vscode.window.createStatusBarItem('mercury-ls.nextEdit', vscode.StatusBarAlignment.Left);

  /** Replaces all that is drawn in an editor: marks, and a hint at the end of a line. */
  show(editor: vscode.TextEditor, marks: readonly Mark[], hint?: { line: number; text: string }): void {
    const gone = marks.filter((mark) => mark.kind === 'removed').map((mark) => rangeOf(mark.range));
    const come = marks.filter((mark) => mark.kind !== 'removed').map(attach);
    if (hint !== undefined) {
      const range = editor.document.lineAt(hint.line).range;
      come.push({ range: new vscode.Range(range.end, range.end), renderOptions: after('hint', hint.text, 2) });
    }
    editor.setDecorations(this.removed, gone);
    editor.setDecorations(this.attached, come);
  }

  /** Points to the lines of a range, in one editor only. */
  point(editor: vscode.TextEditor | undefined, range?: vscode.Range): void {
    for (const one of vscode.window.visibleTextEditors) {
      one.setDecorations(this.current, one === editor && range ? [range] : []);
    }
  }

  /** At the end of a long line a hint is out of sight. */
  say(hint?: string): void {
    this.status.text = (hint ?? '').replaceAll('$(', '$ ('); // else an icon
    this.status[hint ? 'show' : 'hide']();
  }

  clear(): void {
    this.say();
    for (const editor of vscode.window.visibleTextEditors) {
      this.show(editor, []);
    }
  }

  dispose(): void {
    this.removed.dispose();
    this.attached.dispose();
    this.current.dispose();
    this.status.dispose();
  }
}

function attach(mark: Mark): vscode.DecorationOptions {
  return { range: rangeOf(mark.range), renderOptions: after(mark.kind as keyof typeof STYLES, mark.text, mark.gap) };
}

/** Blanks that the renderer would swallow are made hard. */
function after(style: keyof typeof STYLES, text: string, gap: number): vscode.DecorationInstanceRenderOptions {
  return { after: { ...STYLES[style], contentText: text.replaceAll(' ', BLANK), margin: `0 0 0 ${gap}ch` } };
}

export function rangeOf(range: Range): vscode.Range {
  return new vscode.Range(range.start.line, range.start.character, range.end.line, range.end.character);
}
