// Both sides without what the page adds: link attributes, copy buttons, headings below its own, pictures as links.
(sides) => sides.map((html, place) => {
  const safe = (address) => /^(https?:\/\/|mailto:)/i.test(address);
  const said = (node) => {
    if (node.nodeType === 3) return node.data.replace(/[ \t\n]+/g, ' ').replaceAll('<', '&lt;');
    const inside = [...node.childNodes].map(said).join('');
    const tag = node.localName;
    if (tag === 'div') return node.className === 'code' ? said(node.lastChild) : inside;
    if (tag === 'pre') return `<pre>${JSON.stringify(node.textContent)}</pre>`;
    if (tag === 'br') return ' ';
    const level = /^h([1-6])$/.exec(tag);
    const [address, words] = tag === 'img'
      ? [node.getAttribute('src'), node.alt || 'Picture'] : [node.getAttribute('href'), inside];
    if (tag === 'img' || tag === 'a') return safe(address) ? `<a ${address}>${words}</a>` : words;
    const start = node.getAttribute('start');
    return `<${tag}${start ? ` ${start}` : ''}>${inside}</${tag}>`;
  };
  const root = new DOMParser().parseFromString(html, 'text/html').body;
  for (const each of place ? [] : root.querySelectorAll('h1, h2, h3, h4, h5, h6')) {
    const lower = root.ownerDocument.createElement(`h${Math.min(6, Number(each.localName[1]) + 2)}`);
    lower.append(...each.childNodes);
    each.replaceWith(lower);
  }
  return [...root.childNodes].map(said).join('').replace(/ +/g, ' ')
    .replace(/ ?(<\/?(?:p|ul|ol|li|blockquote|h\d|pre|hr)\b[^>]*>) ?/g, '$1').trim();
})
