/** The language client: what it tells the server of settings, what it lets through, how it is started again. */

import { setTimeout as after } from 'node:timers/promises';
import * as vscode from 'vscode';
import {
  InlineCompletionRequest,
  LanguageClient,
  type LanguageClientOptions,
  type Middleware,
  RevealOutputChannelOn,
  State as Running,
} from 'vscode-languageclient/node';
import { withoutLinks } from './links.ts';
import { type Asked, answer } from './names.ts';
import { warn } from './notify.ts';
import { explicit } from './settings.ts';
import type { Engine } from './state.ts';
import { complaint } from './versions.ts';

const SCHEMES = ['file', 'untitled', 'vscode-notebook-cell', 'vscode-vfs', 'vscode-remote'];
export const SELECTOR = SCHEMES.map((scheme) => ({ scheme }));

/** Milliseconds that a server has to answer its first request once another is wanted. */
const PATIENCE = 10_000;

export interface Hearing {
  engineChanged(engine: Engine): void;
  runs(state: 'starting' | 'running' | 'stopped'): void;
  grown(uri: string): void;
  placesChanged(): void;
  readonly inline: NonNullable<Middleware['provideInlineCompletionItems']>;
}

/** Settings of the server by their names in the manifest: it lists exactly those that there are. */
function chosen(extension: vscode.Extension<unknown>): object {
  const groups: { properties: object }[] = extension.packageJSON.contributes.configuration;
  const keys = groups.flatMap((group) => Object.keys(group.properties)).filter((key) => key.startsWith('mercury.'));
  const configuration = vscode.workspace.getConfiguration();
  return { mercury: explicit(keys, (key) => configuration.inspect(key)) };
}

/** The server that was asked for last; a start or a stop begins when the one before it is through. */
export class Connection implements vscode.Disposable {
  private client: LanguageClient | undefined;
  private wanted: LanguageClient | undefined;
  private turn = Promise.resolve();
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

  /** Who answers the editor's questions for inline completions in a document. */
  provider(document: vscode.TextDocument): vscode.InlineCompletionItemProvider | undefined {
    return this.running?.getFeature(InlineCompletionRequest.method)?.getProvider(document);
  }

  /** Nothing is started, and no failure told, where something else is asked for meanwhile. */
  async start(command: readonly string[]): Promise<void> {
    const client = this.made(command);
    await this.next(client);
    if (client !== this.wanted) {
      return;
    }
    this.client = client;
    this.hearing.runs('starting');
    this.log.info(`starting ${command.join(' ')}`);
    try {
      await this.launch(client);
    } catch (error) {
      if (client === this.wanted) {
        throw error;
      }
    }
  }

  stop(): Promise<void> {
    return this.next(undefined);
  }

  /** Tells a running server what is set now; one that starts asks by itself. */
  configure(): void {
    void this.running?.sendNotification('workspace/didChangeConfiguration', { settings: chosen(this.extension) });
  }

  dispose(): void {
    void this.stop();
  }

  private next(wanted: LanguageClient | undefined): Promise<void> {
    this.wanted = wanted;
    this.turn = this.turn.then(() => this.end());
    return this.turn;
  }

  /** A client that is starting cannot be stopped yet; where its server does not answer, its process is ended. */
  private async end(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    const dispose = () => client?.dispose().catch((error: unknown) => this.log.warn(`stopping: ${String(error)}`));
    if (client?.state === Running.Starting) {
      const started = client.start().catch(() => undefined);
      await Promise.race([started, after(PATIENCE, undefined, { ref: false })]);
      await dispose();
      await started;  // it may have answered after all
    }
    await dispose();
  }

  private made(command: readonly string[]): LanguageClient {
    const [program, ...rest] = command;
    const server = { command: program, args: [...rest, '--stdio'] };
    const client = new LanguageClient('mercury-ls', 'Mercury', server, this.options());
    client.registerFeature({
      fillClientCapabilities: (capabilities) => void (capabilities.experimental = { mercury: { names: true, grows: true, version: this.version } }),
      initialize: () => undefined,
      getState: () => ({ kind: 'static' }),
      clear: () => undefined,
    });
    client.onDidChangeState(({ newState }) => this.changed(client, newState));
    return client;
  }

  private async launch(client: LanguageClient): Promise<void> {
    let told = false;
    client.onNotification('mercury/didChangeStatus', (engine: Engine) => {
      told = true;
      this.hearing.engineChanged(engine);
    });
    client.onNotification('mercury/didChangePlaces', () => this.hearing.placesChanged());
    client.onNotification('mercury/didGrow', ({ uri }: { uri: string }) => this.hearing.grown(uri));
    client.onRequest('mercury/names', (asked: Asked) => answer(client, asked));
    await client.start();
    const older = complaint(client.initializeResult?.serverInfo?.version, this.version);
    if (older !== undefined) {
      void warn(older);
    }
    const engine = await client.sendRequest<Engine | null>('mercury/status', {}).catch(() => null);
    if (engine !== null && !told && client === this.wanted) {  // what it has told meanwhile is newer than its answer
      this.hearing.engineChanged(engine);
    }
  }

  private changed(client: LanguageClient, state: Running): void {
    if (client === this.wanted) {
      const names = { [Running.Running]: 'running', [Running.Stopped]: 'stopped' } as const;
      this.hearing.runs(state in names ? names[state as keyof typeof names] : 'starting');
    }
  }

  private get version(): string {
    return this.extension.packageJSON.version as string;
  }

  private options(): LanguageClientOptions {
    return {
      documentSelector: SELECTOR,
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: () => chosen(this.extension),
      connectionOptions: { messageStrategy: { handleMessage: (message, next) => next(withoutLinks(message)) } },
      middleware: { provideInlineCompletionItems: this.hearing.inline },
    };
  }
}
