() => {
  window.seen = [];
  window.watching = true;
  const look = () => {
    const parts = [...document.querySelectorAll('[class*="ghost-text-decoration"]')];
    window.seen.push(parts.map((part) => part.textContent).join('').replaceAll('\u00a0', ' '));
    if (window.watching) requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}
