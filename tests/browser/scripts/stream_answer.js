async ([section, length]) => {
  const { AgentMessage } = await import('/page/turn.js');
  await (await import('/page/prose.js')).loadMarkdown();
  const message = new AgentMessage(null, true);
  document.querySelector('.thread').replaceChildren(message.element);
  for (let at = 0; at < length; at += 100) {
    message.say((section + section).slice(at % section.length, at % section.length + 100));
    await new Promise((done) => setTimeout(done, 10));
  }
  message.finish();
  return message.element.textContent.length;
}
