() => {
  const text = (elements) => [...elements].map((element) => element.textContent).join('');
  const editor = document.querySelector('.editor-instance .monaco-editor');
  const inline = [...(editor?.querySelectorAll('.view-lines > .view-line') ?? [])]
    .sort((a, b) => parseFloat(a.style.top) - parseFloat(b.style.top))
    .map((line) => text(line.querySelectorAll('[class*="ghost-text-decoration"]')))
    .filter((line) => line !== '');
  const below = [...(editor?.querySelectorAll('.suggest-preview-text .view-line') ?? [])]
    .map((line) => line.textContent);
  return [...(inline.length || !below.length ? inline : ['']), ...below].join('\n');
}
