import { type OpenApiDocument, type Operation, type Parameter, resolve } from './document.js';
import { type Html, html } from './html.js';
import { type Call, sampleLanguages } from './sample-languages.js';

/** The operation as a call in each language; all take BASE, TOKEN and ID from their surroundings. */
export function samples(document: OpenApiDocument, path: string, method: string, operation: Operation): Html {
  const call = callOf(document, path, method, operation);
  const written = sampleLanguages.flatMap(([key, name, sample]) => {
    const text = sample(call);
    return text === undefined ? [] : [{ key, name, text }];
  });
  const { operationId } = operation;
  return html`<div class="sample"><div role="radiogroup" aria-label="Language of the sample">
${written.map(
  ({ key, name }, i) =>
    html`<label><input type="radio" name="language-${operationId}" value="${key}"${i === 0 ? html` checked` : ''}><span>${name}</span></label>\n`,
)}</div>
${written.map(({ key, text }) => html`<pre tabindex="0" data-language="${key}"><code>${text}</code></pre>\n`)}</div>`;
}

/** The path of an operation behind the API's address, which is empty for that address itself. */
export function pathBehindBase({ servers }: OpenApiDocument, path: string, operation: Operation): string {
  const [base, own] = [servers[0]?.url ?? '', operation.servers?.[0]?.url];
  return own === undefined ? path : `${own}${path}`.slice(base.length);
}

function callOf(document: OpenApiDocument, path: string, method: string, operation: Operation): Call {
  const parameters = operation.parameters.map((reference) => resolve<Parameter>(document, reference));
  const headers = parameters.filter((each) => each.in === 'header' && each.required);
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  return {
    method: method.toUpperCase(),
    path: pathBehindBase(document, path, operation),
    query: parameters.some(({ name }) => name === 'perPage') ? { perPage: '100' } : {},
    headers: {
      ...Object.fromEntries(headers.map(({ name, example }) => [name, String(example)])),
      ...(type && { 'Content-Type': type }),
    },
    needsToken: operation.security.length > 0,
    body: media?.example,
  };
}
