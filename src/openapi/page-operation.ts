import { allResponses, type OpenApiDocument, type Operation, type Parameter, resolve } from './document.js';
import { block, type Html, html, prose, spans, terms } from './html.js';
import { schemaLink, schemaProse } from './page-schema.js';
import { type Call, samplesOf } from './sample-languages.js';

/** The article of an operation: description, samples beside a response, parameters, request body, responses. `isTried`: the page can send it. */
export function operationArticle(
  document: OpenApiDocument,
  [path, method, operation]: readonly [path: string, method: string, operation: Operation],
  isTried: boolean,
): Html {
  const { operationId, summary, description, requestBody, responses } = operation;
  const call = callOf(document, path, method, operation);
  return html`<article id="${operationId}" data-found${isTried ? html` data-call="${JSON.stringify(call)}"` : ''}>
<h3>${summary}</h3>
<p class="path">${methodTag(method)} <code>${shownPath(document, path)}</code></p>
${prose(description)}
${samples(call, operationId)}
${example(document, operation)}
<h4>Parameters</h4>${parameterTerms(document, operation)}
${
  requestBody &&
  html`<h4>Request body</h4>${prose(requestBody.description)}<p>${Object.entries(requestBody.content).map(
    ([type, { schema }]) => html`<code>${type}</code>: ${schemaLink(schema.$ref)} `,
  )}</p>`
}
<details><summary>Responses: ${Object.keys(responses).join(', ')}</summary>${terms(responseRows(document, operation))}</details>
</article>
`;
}

/** The method as a small label. */
export function methodTag(method: string): Html {
  return html`<span class="method ${method}">${method.toUpperCase()}</span>`;
}

/** The path below the API's address, or that address' own path. */
function shownPath({ servers }: OpenApiDocument, path: string): string {
  return path === '/' ? (servers[0]?.url ?? '').replace(/^https?:\/\/[^/]*/, '') : path;
}

function parameterTerms(document: OpenApiDocument, { parameters }: Operation): Html {
  const rows = parameters.map((reference) => {
    const { name, in: place, required, description, schema } = resolve<Parameter>(document, reference);
    const rule = html`${required ? html`<strong>required</strong>, ` : ''}${place}, ${schemaProse(schema)}`;
    return [html`<code>${name}</code>`, rule, spans(description)] as const;
  });
  return terms(rows);
}

/** A row per status, with the headers that not every response has. */
function responseRows(document: OpenApiDocument, { responses }: Operation): (readonly [string, Html, Html[]])[] {
  const common = new Set(commonHeaders(document));
  return Object.entries(responses).map(([status, reference]) => {
    const response = resolve(document, reference);
    const own = Object.keys(response.headers).filter((name) => !common.has(name));
    return [status, headerNames(own), spans(response.description)];
  });
}

/** "`ETag` `Retry-After`". */
export function headerNames(names: readonly string[]): Html {
  return html`${names.map((name) => html`<code>${name}</code> `)}`;
}

/** The headers that every response can have. */
export function commonHeaders(document: OpenApiDocument): string[] {
  const [first = [], ...others] = allResponses(document).map(({ headers }) => Object.keys(headers));
  return first.filter((name) => others.every((names) => names.includes(name)));
}

/** An example of the body of the first response, which is the successful response. */
function example(document: OpenApiDocument, { responses }: Operation): Html | undefined {
  const [status, reference] = Object.entries(responses)[0] as [string, Operation['responses'][string]];
  const media = resolve(document, reference).content?.['application/json'];
  if (media?.example === undefined) return undefined;
  return html`<div class="response"><h4>Response ${status}</h4>${block(JSON.stringify(media.example, null, 2))}</div>`;
}

/** The operation as a call in each language; all take BASE, TOKEN and ID from their surroundings. */
function samples(call: Call, operationId: string): Html {
  const written = samplesOf(call);
  return html`<div class="sample"><div role="radiogroup" aria-label="Language of the sample">
${written.map(
  ({ key, name }, i) =>
    html`<label><input type="radio" name="language-${operationId}" value="${key}"${i === 0 ? html` checked` : ''}><span>${name}</span></label>\n`,
)}</div>
${written.map(({ key, text }) => html`<pre tabindex="0" data-language="${key}"><code>${text}</code></pre>\n`)}</div>`;
}

/** Records of a page in a sample, where the gateway allows so many. */
const samplePerPage = 1000;

function callOf(document: OpenApiDocument, path: string, method: string, operation: Operation): Call {
  const parameters = operation.parameters.map((reference) => resolve<Parameter>(document, reference));
  const perPage = parameters.find(({ name }) => name === 'perPage');
  const headers = parameters.filter((each) => each.in === 'header' && each.required);
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  return {
    method: method.toUpperCase(),
    path: path === '/' ? '' : path,
    parameters: parameters.map((each) => ({ name: each.name, in: each.in })),
    perPage: perPage && Math.min(samplePerPage, Number(perPage.schema.maximum)),
    headers: {
      ...Object.fromEntries(headers.map(({ name, example }) => [name, String(example)])),
      ...(type && { 'Content-Type': type }),
    },
    needsToken: operation.security.length > 0,
    body: media?.example,
  };
}
