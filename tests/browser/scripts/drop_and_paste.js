(talk, [bytes, name]) => {
  const data = new DataTransfer();
  data.items.add(new File([new Uint8Array(bytes)], name, { type: 'image/png' }));
  const event = (kind) => new DragEvent(kind, { dataTransfer: data, bubbles: true, cancelable: true });
  talk.dispatchEvent(event('dragover'));
  talk.dispatchEvent(event('drop'));
  const paste = new ClipboardEvent('paste', { bubbles: true, cancelable: true });
  Object.defineProperty(paste, 'clipboardData', { value: data }); // Firefox takes no data of a script
  talk.querySelector('textarea').dispatchEvent(paste);
}
