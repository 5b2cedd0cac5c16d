// mercury-ls in coc.nvim, which draws ghost text of language servers itself; next edits come through its provider API.
'use strict';

const { version } = require('./package.json');
const { LanguageClient, commands, languages, services, workspace } = require('coc.nvim');

const DOCUMENTS = [{ scheme: 'file' }, { scheme: 'untitled' }];
const MADE = 'mercury.nextEditMade';

exports.activate = (context) => {
  const client = new LanguageClient(
    'mercury',
    'mercury-ls',
    { command: 'mercury-ls', args: ['--stdio'] },
    {
      documentSelector: DOCUMENTS,
      initializationOptions: { pluginVersion: version },
      synchronize: { configurationSection: 'mercury' },
    },
  );
  context.subscriptions.push(
    services.registerLanguageClient(client),
    commands.registerCommand(MADE, (id) => made(client, id), undefined, true),
    languages.registerNextEditProvider(DOCUMENTS, new NextEdits(client)),
  );
};

class NextEdits {
  constructor(client) {
    this.client = client;
  }

  /** One candidate for each place; coc.nvim jumps to one, shows it, and makes it. */
  async provideNextEdits(document, position, context, token) {
    const { uri, version } = document;
    const question = { textDocument: { uri, version }, position, context };
    const offer = await this.client.sendRequest('mercury/nextEdit', question, token);
    return (offer?.edits ?? []).map(({ textDocument, range, newText }) => ({
      textDocument,
      range,
      newText,
      command: { title: 'Made', command: MADE, arguments: [offer.id] },
    }));
  }

  /** Vim would not paint it before the next key. */
  handleDidShowNextEdit() {
    workspace.nvim.command('redraw', true);
  }
}

/** The server is told of each place, and the next one is looked for once coc.nvim is done with this one. */
async function made(client, id) {
  await client.sendNotification('mercury/didAccept', { id, edits: 1 });
  setTimeout(() => commands.executeCommand('editor.action.triggerNextEdit', { autoTrigger: true }), 0);
}
