// Reloads the document when its style sheet or one of its modules failed to load: then no module runs. It comes first, to see all such errors.
addEventListener('error', ({ target: at }) => {
  if (!(at instanceof HTMLScriptElement || (at instanceof HTMLLinkElement && at.rel === 'stylesheet'))) return;
  document.body?.replaceChildren('A part of this page could not be fetched. It is loaded again in a moment.');
  setTimeout(() => location.reload(), 1000 + 5 * performance.now()); // a slow server gets fewer requests
}, true);
