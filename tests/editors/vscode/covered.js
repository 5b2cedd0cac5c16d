() => {
  const found = [];
  for (const line of document.querySelectorAll('.editor-instance .view-lines > .view-line')) {
    const spans = [...line.querySelectorAll('span > span')];
    spans.forEach((span, index) => {
      const next = spans[index + 1];
      if (next && span.getBoundingClientRect().right > next.getBoundingClientRect().left + 0.5) {
        found.push(span.textContent);
      }
    });
  }
  return found;
}
