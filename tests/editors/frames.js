() => {
  window.frames = [];
  const look = () => {
    const lines = [...document.querySelectorAll('.editor-instance .monaco-editor .view-line')]
      .filter((line) => line.getClientRects().length)
      .map((line) => [line.getBoundingClientRect().top, line.textContent])
      .sort(([one], [other]) => one - other);
    const frame = lines.map(([, text]) => text).join('\n');
    if (frame !== window.frames.at(-1)) window.frames.push(frame);
  };
  const pulse = document.body.appendChild(document.createElement('div'));
  pulse.style.position = 'fixed';
  const beat = () => {
    pulse.style.width = pulse.offsetWidth ? '0' : '1px';
    requestAnimationFrame(beat);
  };
  new ResizeObserver(look).observe(pulse);
  beat();
}
