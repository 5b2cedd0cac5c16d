/** The language client: what it tells the server of settings, what it lets through, how it is started again. */

import * as vscode from 'vscode';
import {
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  RevealOutputChannelOn,
  State as Running,
} from 'vscode-languageclient/node';
import { explicit } from './settings.ts';
import type { Engine } from './state.ts';

const SCHEMES = ['file', 'untitled', 'vscode-notebook-cell', 'vscode-vfs', 'vscode-remote'];
export const SELECTOR = SCHEMES.map((scheme) => ({ scheme }));

export interface Hearing {
  engineChanged(engine: Engine): void;
  runs(state: 'starting' | 'running' | 'stopped'): void;
  readonly inline: NonNullable<Middleware['provideInlineCompletionItems']>;
}

/** Settings of the server by their names in the manifest: it lists exactly those that there are. */
function chosen(extension: vscode.Extension<unknown>): object {
  const groups: { properties: object }[] = extension.packageJSON.contributes.configuration;
  const keys = groups.flatMap((group) => Object.keys(group.properties)).filter((key) => key.startsWith('mercury.'));
  const configuration = vscode.workspace.getConfiguration();
  return { mercury: explicit(keys, (key) => configuration.inspect(key)) };
}

export class Connection implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private readonly extension: vscode.Extension<unknown>;
  private readonly log: vscode.LogOutputChannel;
  private readonly hearing: Hearing;

  constructor(extension: vscode.Extension<unknown>, log: vscode.LogOutputChannel, hearing: Hearing) {
    this.extension = extension;
    this.log = log;
    this.hearing = hearing;
  }

  get running(): LanguageClient | undefined {
    return this.client?.state === Running.Running ? this.client : undefined;
  }

  async start(command: readonly string[]): Promise<void> {
    await this.stop();
    this.hearing.runs('starting');
    this.log.info(`starting ${command.join(' ')}`);
    const [program, ...rest] = command;
    const server = { command: program, args: [...rest, '--stdio'] };
    const client = new LanguageClient('mercury-ls', 'Mercury', server, this.options());
    this.client = client;
    client.registerFeature({
      fillClientCapabilities: (capabilities) => void (capabilities.experimental = { mercury: {} }),
      initialize: () => undefined,
      getState: () => ({ kind: 'static' }),
      clear: () => undefined,
    });
    let told = false;
    client.onNotification('mercury/didChangeStatus', (engine: Engine) => {
      told = true;
      this.hearing.engineChanged(engine);
    });
    client.onDidChangeState(({ newState }) => this.changed(client, newState));
    await client.start();
    const engine = await client.sendRequest<Engine | null>('mercury/status', {}).catch(() => null);
    if (engine !== null && !told) {  // what the server has told meanwhile is newer than its answer
      this.hearing.engineChanged(engine);
    }
  }

  /** Tells a running server what is set now; one that starts asks by itself. */
  configure(): void {
    void this.running?.sendNotification('workspace/didChangeConfiguration', { settings: chosen(this.extension) });
  }

  async stop(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    await client?.dispose().catch((error: unknown) => this.log.warn(`stopping: ${String(error)}`));
  }

  dispose(): void {
    void this.stop();
  }

  private changed(client: LanguageClient, state: Running): void {
    if (client === this.client) {
      const names = { [Running.Running]: 'running', [Running.Stopped]: 'stopped' } as const;
      this.hearing.runs(state in names ? names[state as keyof typeof names] : 'starting');
    }
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: SELECTOR,
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: () => chosen(this.extension),
      middleware: { provideInlineCompletionItems: this.hearing.inline },
    };
  }
}
