import { allResponses, type OpenApiDocument, type Operation, type Parameter, resolve } from './document.js';
import { type Html, html, prose, spans, table } from './html.js';
import { schemaLink, schemaProse } from './page-schema.js';

/** The article of an operation: description, call with curl, parameters, request body, responses. */
export function operationArticle(document: OpenApiDocument, path: string, method: string, operation: Operation): Html {
  const { operationId, summary, description, requestBody } = operation;
  return html`<article id="${operationId}">
<h3><span class="method">${method.toUpperCase()}</span> <code>${path}</code> <span class="summary">${summary}</span></h3>
${prose(description)}
<pre tabindex="0"><code>${curl(document, path, method, operation)}</code></pre>
${parameterTable(document, operation)}
${
  requestBody &&
  html`<h4>Request body</h4>${prose(requestBody.description)}<p>${Object.entries(requestBody.content).map(
    ([type, { schema }]) => html`<code>${type}</code>: ${schemaLink(schema.$ref)} `,
  )}</p>`
}
<h4>Responses</h4>
${table(`Responses of ${operationId}`, ['Status', 'Meaning', 'Headers'], responseRows(document, operation))}
${exampleDetails(document, operation)}
</article>
`;
}

function parameterTable(document: OpenApiDocument, { operationId, parameters }: Operation): Html {
  const rows = parameters.map((reference) => {
    const { name, in: place, required, description, schema } = resolve<Parameter>(document, reference);
    return [
      html`<code>${name}</code>${required ? html` <strong>required</strong>` : ''}`,
      place,
      schemaProse(schema),
      spans(description),
    ];
  });
  return html`<h4>Parameters</h4>${table(`Parameters of ${operationId}`, ['Name', 'In', 'Value', 'Description'], rows)}`;
}

/** A row per status, with the headers that not every response has. */
function responseRows(document: OpenApiDocument, { responses }: Operation): (string | Html | Html[])[][] {
  const common = new Set(commonHeaders(document));
  return Object.entries(responses).map(([status, reference]) => {
    const response = resolve(document, reference);
    const own = Object.keys(response.headers).filter((name) => !common.has(name));
    return [status, spans(response.description), own.map((name) => html`<code>${name}</code> `)];
  });
}

/** The headers that every response can have. */
export function commonHeaders(document: OpenApiDocument): string[] {
  const [first = [], ...others] = allResponses(document).map(({ headers }) => Object.keys(headers));
  return first.filter((name) => others.every((names) => names.includes(name)));
}

/** An example of the body of the first response, which is the successful response. */
function exampleDetails(document: OpenApiDocument, { responses }: Operation): Html | undefined {
  const [status, reference] = Object.entries(responses)[0] as [string, Operation['responses'][string]];
  const media = resolve(document, reference).content?.['application/json'];
  if (media?.example === undefined) return undefined;
  const body = JSON.stringify(media.example, null, 2);
  return html`<details><summary>Example of a ${status} body</summary><pre tabindex="0"><code>${body}</code></pre></details>`;
}

/** The call with curl; without a public address the host is `$GATEWAY`. */
function curl(document: OpenApiDocument, path: string, method: string, operation: Operation): string {
  const all = operation.parameters.map((reference) => resolve<Parameter>(document, reference));
  const server = (operation.servers ?? document.servers)[0]?.url ?? '';
  const base = server.startsWith('/') ? `$GATEWAY${server}` : server;
  const address = path.replace(/\{(\w+)\}/g, (_, name) => String(all.find((each) => each.name === name)?.example));
  const query = all.some(({ name }) => name === 'perPage') && method === 'get' ? '?perPage=100' : '';
  const lines = [`curl ${method === 'get' ? '' : `-X ${method.toUpperCase()} `}"${base}${address}${query}"`];
  if (operation.security.length > 0) lines.push('-H "Authorization: Bearer $TOKEN"');
  for (const { name, in: place, required, example } of all) {
    if (place === 'header' && required) lines.push(`-H ${quoted(`${name}: ${example}`)}`);
  }
  const [type, media] = Object.entries(operation.requestBody?.content ?? {})[0] ?? [];
  if (type && media) lines.push(`-H "Content-Type: ${type}"`, `-d ${quoted(JSON.stringify(media.example))}`);
  return lines.join(' \\\n  ');
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
