/** Lets a test ask this window's extension host: each line on the socket is a function body, the answer is JSON. */

const fs = require('node:fs');
const net = require('node:net');
const readline = require('node:readline');
const vscode = require('vscode');

const AsyncFunction = (async () => {}).constructor;

async function answer(line) {
  try {
    const { body, given } = JSON.parse(line);
    const value = await new AsyncFunction('vscode', 'given', body)(vscode, given);
    return { value: value ?? null };
  } catch (error) {
    return { error: String(error?.stack ?? error) };
  }
}

exports.activate = (context) => {
  const path = process.env.MERCURY_TEST_SOCKET;
  fs.rmSync(path, { force: true });
  const server = net.createServer((socket) => {
    readline.createInterface({ input: socket }).on('line', async (line) => {
      socket.write(JSON.stringify(await answer(line)) + '\n');
    });
    socket.on('error', () => undefined);
  });
  server.listen(path);
  context.subscriptions.push({ dispose: () => server.close() });
};
