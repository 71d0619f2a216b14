async (texts) => {
  const { loadMarkdown, Prose } = await import('/page/prose.js');
  await loadMarkdown();
  return texts.filter((source) => {
    const [grown, whole] = [document.createElement('div'), document.createElement('div')];
    const prose = new Prose();
    prose.draw(grown, source, true);
    prose.draw(grown, source);
    new Prose().draw(whole, source);
    return grown.innerHTML !== whole.innerHTML;
  });
}
