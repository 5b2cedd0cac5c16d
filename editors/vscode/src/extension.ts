/** The extension: what it is made of, and the commands that people give it. */

import * as vscode from 'vscode';
import { Connection } from './client.ts';
import { COPILOTS, type Copilot, silenced, speaks } from './copilot.ts';
import { Diagnostics } from './diagnostics.ts';
import { Ghost } from './ghost.ts';
import { Server, install } from './install.ts';
import { NextEdits } from './nextedit.ts';
import { complain, inform } from './notify.ts';
import { type Engine, type Metrics, type State, type Why, face, page } from './state.ts';

/** Settings that may forbid a next edit; editors change others of their own accord, most of them while they start. */
const OURS = ['mercury', 'mercury-ls', 'github.copilot', 'chat.disableAIFeatures'];
const PAGES = 'mercury-ls';

/** Once a blank is typed, its last line is completed, and so is one for the price below it. */
const SAMPLE = `class Parcel:
    def __init__(self, width, height, depth, weight, price):
        self.width = width
        self.height = height
        self.depth = depth
        self.weight =`;

export async function activate(context: vscode.ExtensionContext): Promise<void> {
  const mercury = new Mercury(context);
  context.subscriptions.push(mercury);
  await mercury.start();
}

class Mercury implements vscode.Disposable {
  private state: State = { server: 'stopped' };
  private readonly log = vscode.window.createOutputChannel('Mercury', { log: true });
  private readonly item = vscode.window.createStatusBarItem('mercury-ls', vscode.StatusBarAlignment.Right, 90);
  private readonly changedPage = new vscode.EventEmitter<vscode.Uri>();
  private readonly server: Server;
  private readonly ghost: Ghost;
  private readonly connection: Connection;
  private readonly nextEdits: NextEdits;
  private readonly subscriptions: vscode.Disposable[];
  private readonly context: vscode.ExtensionContext;
  private readonly pages = new Map<string, string>();
  private wakes: NodeJS.Timeout | undefined;
  private signedIn = true;
  private asked = false;

  constructor(context: vscode.ExtensionContext) {
    this.context = context;
    this.connection = new Connection(context.extension, this.log, {
      engineChanged: (engine: Engine) => {
        const wasReady = this.state.engine?.state === 'ready';
        this.become({ engine });
        if (engine.state === 'ready' && !wasReady) {
          this.nextEdits.refresh();
        }
      },
      runs: (server) => this.runs(server),
      placesChanged: () => this.nextEdits.placesChanged(),
      grown: (uri) => void this.ghost.grown(uri),
      inline: async (document, position, asked, token, next) => {
        this.nextEdits.menu(asked.selectedCompletionInfo !== undefined);
        if (this.silence(document) || hasSeveralCursors(document)) {
          this.ghost.forget();
          return [];
        }
        const found = await next(document, position, this.ghost.asking(asked), token);
        const items = Array.isArray(found) ? found : (found?.items ?? []);
        if (!token.isCancellationRequested) {
          this.ghost.remember(document, position, items);
        }
        return found;
      },
    });
    this.ghost = new Ghost(() => this.connection, () => this.nextEdits.ghostChanged());
    this.nextEdits = new NextEdits({
      connection: () => this.connection,
      silence: (document) => this.silence(document),
      hasGhost: (uri, line) => this.ghost.isAt(uri, line),
      wishes: (wish) => this.state.engine?.state === 'ready' && this.state.engine[wish] === true,
    });
    this.server = new Server(context, this.log, () => this.state.server === 'missing' && void this.start());
    const provideTextDocumentContent = (uri: vscode.Uri) => this.pages.get(uri.path) ?? '';
    this.subscriptions = [
      this.log,
      this.item,
      this.changedPage,
      this.server,
      this.connection,
      this.nextEdits,
      new Diagnostics(() => this.connection),
      vscode.workspace.registerTextDocumentContentProvider(PAGES, {
        provideTextDocumentContent,
        onDidChange: this.changedPage.event,
      }),
      vscode.workspace.onDidChangeConfiguration((event) => this.configured(event)),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.state.server === 'missing' && void this.start()),
      vscode.window.onDidChangeActiveTextEditor(() => this.become({})),
      vscode.extensions.onDidChange(() => this.become({})),
      vscode.authentication.onDidChangeSessions(() => void this.lookAtAccounts()),
      ...this.commands(),
    ];
    this.item.name = 'Mercury';
    this.item.command = 'mercury-ls.menu';
    this.item.show();
  }

  dispose(): void {
    clearTimeout(this.wakes);
    this.subscriptions.forEach((one) => one.dispose());
  }

  // Life

  async start(): Promise<void> {
    const found = await this.server.find();
    if (found === undefined) {
      void this.connection.stop();
      this.runs('missing');
      void this.install();
      return;
    }
    if (!this.server.isAgreed(found)) {
      void this.connection.stop();
      this.runs('asking');
      if (!(await this.server.agrees(found))) {
        return this.runs('missing');
      }
    }
    try {
      await this.connection.start(found.command);
    } catch (error) {
      this.become({ server: 'stopped', engine: undefined });
      void this.failed(`${found.command.join(' ')} could not be started: ${String(error)}`);
    }
    void this.lookAtAccounts();
  }

  private async install(): Promise<void> {
    if (await install(this.log)) {
      await this.start();
    }
  }

  private async failed(problem: string): Promise<void> {
    this.log.error(problem);
    const show = 'Show Log';
    if ((await complain(`Mercury: ${problem}`, show)) === show) {
      this.log.show();
    }
  }

  private runs(server: State['server']): void {
    this.ghost.forget();
    this.nextEdits.clear();
    this.become(server === 'running' ? { server } : { server, engine: undefined, snoozedUntil: undefined });
  }

  private configured(event: vscode.ConfigurationChangeEvent): void {
    if (event.affectsConfiguration('mercury-ls.server.command')) {
      void this.start();
    } else if (event.affectsConfiguration('mercury')) {
      this.connection.configure();
    }
    if (OURS.some((section) => event.affectsConfiguration(section))) {
      this.nextEdits.clear();
    }
    this.become({});
  }

  // What the user sees

  private become(change: Partial<State>): void {
    const document = vscode.window.activeTextEditor?.document;
    this.state = { ...this.state, ...change, silence: document && this.silence(document) };
    const shown = face(this.state, Date.now());
    this.item.text = shown.text;
    this.item.tooltip = shown.tooltip;
    const colour = new vscode.ThemeColor('statusBarItem.warningBackground');
    this.item.backgroundColor = shown.isWarning ? colour : undefined;
    this.item.accessibilityInformation = { label: `Mercury. ${shown.tooltip}` };
  }

  /** Why the extension keeps quiet in a document; the server's own reasons are the server's. */
  private silence(document: vscode.TextDocument): string {
    const settings = vscode.workspace.getConfiguration('mercury.suggest');
    const languages = settings.get<Record<string, boolean>>('languages', {});
    if (!settings.get('enabled', true)) {
      return 'suggestions are off';
    }
    if (!(languages[document.languageId] ?? languages['*'] ?? true)) {
      return `off for ${document.languageId}`;
    }
    return speaks(this.copilot(), document.languageId) ? 'GitHub Copilot suggests here' : '';
  }

  private copilot(): Copilot {
    const configuration = vscode.workspace.getConfiguration();
    return {
      active: COPILOTS.some((id) => vscode.extensions.getExtension(id)?.isActive),
      signedIn: this.signedIn,
      enable: configuration.get('github.copilot.enable', {}),
      aiDisabled: configuration.get('chat.disableAIFeatures', false),
    };
  }

  /** Older editors cannot tell; there, who has Copilot has chosen it. */
  private async lookAtAccounts(): Promise<void> {
    const { getAccounts } = vscode.authentication as { getAccounts?(provider: string): Thenable<readonly unknown[]> };
    const enterprise = vscode.workspace.getConfiguration('github-enterprise').get('uri', '') !== '';
    const providers = enterprise ? ['github', 'github-enterprise'] : ['github'];
    const found = providers.map((one) => getAccounts?.(one).then((all) => all.length > 0, () => false) ?? true);
    this.signedIn = (await Promise.all(found)).includes(true);
    this.become({});
    await this.askAboutCopilot();
  }

  private async askAboutCopilot(): Promise<void> {
    const language = vscode.window.activeTextEditor?.document.languageId ?? '*';
    if (this.asked || this.context.globalState.get('asked about Copilot') || !speaks(this.copilot(), language)) {
      return;
    }
    this.asked = true;
    const [mercury, theirs] = ['Use Mercury', 'Leave It to Copilot'];
    const text = 'GitHub Copilot suggests code here too. Mercury stays silent wherever it does, so that nothing is suggested twice.';
    const answer = await inform(text, mercury, theirs);
    if (answer !== undefined) {
      await this.context.globalState.update('asked about Copilot', true);
    }
    if (answer === mercury) {
      const settings = vscode.workspace.getConfiguration('github.copilot');
      await settings.update('enable', silenced(this.copilot().enable), vscode.ConfigurationTarget.Global);
    }
  }

  // Commands

  private commands(): vscode.Disposable[] {
    const handlers: Record<string, (...given: never[]) => unknown> = {
      menu: () => this.menu(),
      install: () => this.server.find().then((found) => (found ? this.start() : this.install())),
      restart: () => this.start(),
      log: () => this.log.show(),
      snooze: (minutes?: number) => this.snooze(minutes),
      wake: () => this.snooze(0),
      toggleLanguage: () => this.toggleLanguage(),
      metrics: () => this.showMetrics(),
      stats: () => this.showStats(),
      why: () => this.why(),
      tryIt: () => this.tryIt(),
      suggest: () => vscode.commands.executeCommand('editor.action.inlineSuggest.trigger'),
      acceptWord: () => this.ghost.acceptPart('editor.action.inlineSuggest.acceptNextWord'),
      acceptLine: () => this.ghost.acceptPart('editor.action.inlineSuggest.acceptNextLine'),
      dismiss: () => this.ghost.dismiss(),
      nextEdit: () => this.nextEdits.accept('all'),
      nextEditByTab: () => this.nextEdits.tab(),
      nextEditOne: () => this.nextEdits.accept('one'),
      previewNextEdit: () => this.nextEdits.preview(),
      dismissNextEdit: () => this.nextEdits.dismiss(),
    };
    return Object.entries(handlers).map(([name, run]) => vscode.commands.registerCommand(`mercury-ls.${name}`, run));
  }

  private async menu(): Promise<void> {
    const snoozed = (this.state.snoozedUntil ?? 0) > Date.now();
    const language = vscode.window.activeTextEditor?.document.languageId;
    const entries: [string, string][] = [
      ...(this.state.server === 'missing' ? [['$(cloud-download) Install the server', 'install'] as [string, string]] : []),
      ['$(question) Why is nothing suggested here?', 'why'],
      snoozed ? ['$(bell) Wake', 'wake'] : ['$(bell-slash) Snooze', 'snooze'],
      ...(language ? [[`$(circle-slash) Suggestions in ${language}: on or off`, 'toggleLanguage'] as [string, string]] : []),
      ['$(graph) Show statistics', 'stats'],
      ['$(pulse) Show metrics', 'metrics'],
      ['$(debug-restart) Restart the server', 'restart'],
      ['$(output) Show the log', 'log'],
      ['$(gear) Settings', 'settings'],
    ];
    const items = entries.map(([label, command]) => ({ label, command }));
    const chosen = await vscode.window.showQuickPick(items, { placeHolder: face(this.state, Date.now()).tooltip });
    if (chosen?.command === 'settings') {
      await vscode.commands.executeCommand('workbench.action.openSettings', '@ext:mercury-ls.mercury-ls');
    } else if (chosen !== undefined) {
      await vscode.commands.executeCommand(`mercury-ls.${chosen.command}`);
    }
  }

  private async snooze(given?: number): Promise<void> {
    const choices = [5, 15, 60].map((minutes) => ({ label: `${minutes} minutes`, minutes }));
    const minutes = given ?? (await vscode.window.showQuickPick(choices, { placeHolder: 'No suggestions for' }))?.minutes;
    const client = this.connection.running;
    if (minutes === undefined || client === undefined) {
      return;
    }
    await client.sendRequest('mercury/snooze', { minutes });
    this.nextEdits.clear();
    await vscode.commands.executeCommand('editor.action.inlineSuggest.hide');
    clearTimeout(this.wakes);
    this.become({ snoozedUntil: minutes > 0 ? Date.now() + minutes * 60_000 : undefined });
    this.wakes = setTimeout(() => this.become({ snoozedUntil: undefined }), minutes * 60_000);
  }

  private async toggleLanguage(): Promise<void> {
    const language = vscode.window.activeTextEditor?.document.languageId;
    if (language === undefined) {
      return;
    }
    const settings = vscode.workspace.getConfiguration('mercury.suggest');
    const languages = settings.get<Record<string, boolean>>('languages', {});
    const now = languages[language] ?? languages['*'] ?? true;
    const mine = settings.inspect<Record<string, boolean>>('languages')?.globalValue ?? {};
    await settings.update('languages', { ...mine, [language]: !now }, vscode.ConfigurationTarget.Global);
  }

  private async showMetrics(): Promise<void> {
    const metrics = await this.connection.running?.sendRequest<Metrics>('mercury/status', {});
    const uri = this.page('Mercury metrics', metrics ? page(metrics) : `${face(this.state, Date.now()).tooltip}\n`);
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument(uri), { preview: true });
  }

  private async showStats(): Promise<void> {
    const stats = await this.connection.running?.sendRequest<{ page: string }>('mercury/stats', {});
    const uri = this.page('Mercury statistics.md', stats?.page ?? `${face(this.state, Date.now()).tooltip}\n`);
    await vscode.commands.executeCommand('markdown.showPreview', uri);
  }

  /** The address of a page that the editor reads from us. */
  private page(path: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: PAGES, path });
    this.pages.set(path, text);
    this.changedPage.fire(uri);
    return uri;
  }

  private async why(): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const client = this.connection.running;
    let text = face(this.state, Date.now()).tooltip;
    if (editor && client && !this.silence(editor.document)) {
      const textDocument = { uri: client.code2ProtocolConverter.asUri(editor.document.uri) };
      const position = client.code2ProtocolConverter.asPosition(editor.selection.active);
      const params = { textDocument, position };
      const why = await client.sendRequest<Why>('mercury/why', params);
      text = why.nextEdit ? `inline: ${why.reason}; next edit: ${why.nextEdit}` : why.reason;
      text = why.model ? `${text}; ${why.model}` : text;
    }
    void inform(`Mercury: ${text}`);
  }

  private async tryIt(): Promise<void> {
    const document = await vscode.workspace.openTextDocument({ language: 'python', content: SAMPLE });
    const end = document.lineAt(document.lineCount - 1).range.end;
    await vscode.window.showTextDocument(document, { selection: new vscode.Range(end, end) });
  }
}

function hasSeveralCursors(document: vscode.TextDocument): boolean {
  const editor = vscode.window.activeTextEditor;
  return editor?.document === document && editor.selections.length > 1;
}
