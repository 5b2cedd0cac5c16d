() => {
  const found = [];
  for (const span of document.querySelectorAll('.editor-instance .view-line span[class*="ced-"]')) {
    for (const pseudo of ['::before', '::after']) {
      const content = getComputedStyle(span, pseudo).content;
      if (content && content !== 'none' && content !== 'normal') found.push(content);
    }
    if (span.textContent) found.push(span.textContent);
  }
  return found;
}
