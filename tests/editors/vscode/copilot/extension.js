/** Copilot as far as it meets us: its name, an account, ghost text where it is enabled, and a command for what is taken. */

const vscode = require('vscode');

const ACCEPTED = 'github.copilot.didAcceptCompletionItem';

exports.activate = (context) => {
  const sessions = [];
  const changed = new vscode.EventEmitter();
  let taken = 0;

  function signIn() {
    sessions.push({ id: '1', accessToken: 'none', account: { id: '1', label: 'someone' }, scopes: ['read:user'] });
    changed.fire({ added: sessions, removed: [], changed: [] });
  }

  function provideInlineCompletionItems(document, position) {
    const enable = vscode.workspace.getConfiguration('github.copilot').get('enable');
    if (sessions.length === 0 || !(enable[document.languageId] ?? enable['*'])) {
      return [];
    }
    const range = new vscode.Range(position, position);
    return [new vscode.InlineCompletionItem(' # by Copilot', range, { title: '', command: ACCEPTED })];
  }

  context.subscriptions.push(
    vscode.authentication.registerAuthenticationProvider('github', 'GitHub', {
      onDidChangeSessions: changed.event,
      getSessions: async () => sessions,
    }),
    vscode.languages.registerInlineCompletionItemProvider('*', { provideInlineCompletionItems }),
    vscode.commands.registerCommand(ACCEPTED, () => (taken += 1)),
    vscode.commands.registerCommand('github.copilot.signIn', signIn),
    vscode.commands.registerCommand('github.copilot.taken', () => taken),
  );
};
