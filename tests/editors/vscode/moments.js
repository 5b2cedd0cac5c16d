
window.moments = {};
const now = () => performance.timeOrigin + performance.now();
const answer = new TextEncoder().encode('"insertText"');
const holds = (bytes) => {
  for (let at = bytes.indexOf(answer[0]); at >= 0; at = bytes.indexOf(answer[0], at + 1)) {
    if (answer.every((byte, index) => bytes[at + index] === byte)) return true;
  }
  return false;
};
window.WebSocket = class extends WebSocket {
  constructor(...given) {
    super(...given);
    this.addEventListener('message', async ({ data }) => {
      const moment = now();
      if (holds(new Uint8Array(await new Response(data).arrayBuffer()))) window.moments.arrived = moment;
    });
  }
};
window.addEventListener('keydown', () => { window.moments = { key: now() }; }, true);
new MutationObserver(() => {
  if (!window.moments.drawn && document.querySelector('[class*="ghost-text-decoration"]')) {
    window.moments.drawn = now();
    setTimeout(() => { window.moments.painted = now(); });
  }
}).observe(document, { subtree: true, childList: true });
