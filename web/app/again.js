// Loads the document anew when its style sheet or one of its modules did not come: without one of them no module runs. It stands first, to hear of all others.
addEventListener('error', ({ target: at }) => {
  if (!(at instanceof HTMLScriptElement || (at instanceof HTMLLinkElement && at.rel === 'stylesheet'))) return;
  document.body?.replaceChildren('A part of this page could not be fetched. It is loaded again in a moment.');
  setTimeout(() => location.reload(), 1000 + 5 * performance.now()); // a slow server is asked rarely
}, true);
