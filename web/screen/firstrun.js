// The empty list of executions: how to submit one.
import { html } from '../vendor/preact.js';
import { empty } from '../part/kit.js';

const server = new URL('../', document.baseURI).href.replace(/\/$/, '');

const commands = `echo 'print(6*7)' | pawl eval --language python --server ${server} -

curl -s ${server}/api/eval -d '{"language": "python", "source": "print(6*7)", "wait": "30s"}'`;

export const FirstRun = () => empty('Nothing has run yet', html`<p>Submit something from here, from the command line or over HTTP:</p>
  <pre tabindex="0" aria-label="Commands">${commands}</pre>
  <p><a class="button primary" href="new">New execution</a></p>`);
