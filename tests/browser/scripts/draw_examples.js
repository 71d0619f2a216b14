async (examples) => {
  const { blocksOf, nodesOf, parser } = await import('/page/markdown.js');
  const { default: MarkdownIt } = await import('/page/vendor/markdown-it.js');
  const extensions = ['linkify', 's', 'math', 'table', 'footnote_ref', 'task', 'media'];
  const standard = new MarkdownIt('commonmark');
  const kinds = (tokens) => tokens.flatMap((each) => [
    each.markup === 'linkify' ? 'linkify' : each.type.replace(/_(open|close)$/, ''), ...kinds(each.children ?? [])]);
  return examples.map(([source]) => {
    const element = document.createElement('div');
    element.append(...blocksOf(source, {}).flatMap((each) => nodesOf(each)));
    return { standard: standard.render(source), html: element.innerHTML,
      raw: kinds(standard.parse(source, {})).some((each) => each.startsWith('html_')),
      extensions: kinds(parser.parse(source, {})).some((each) => extensions.includes(each)) };
  });
}
