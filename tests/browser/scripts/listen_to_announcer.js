() => {
  window.spoken = [];
  const announcer = document.getElementById("announcer");
  new MutationObserver(() => window.spoken.push(announcer.textContent)).observe(announcer, { childList: true });
}
