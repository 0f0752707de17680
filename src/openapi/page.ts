import { allResponses, type Header, type OpenApiDocument, resolve } from './document.js';
import { block, code, fillHtml, Html, html, pagePolicy, prose, spans, terms } from './html.js';
import { commonHeaders, headerNames, methodTag, operationArticle } from './page-operation.js';
import { schemaMembers, schemaProse } from './page-schema.js';
import { readText } from './template.js';

/**
 * The OpenAPI document as a page of HTML in one file: its style, script and icon are in it, and its policy refuses all else. It
 * escapes every text of the document. `servedByApi`: the page is below the address of the API; its script shows that address
 * when PUBLIC_URL does not, and sends requests to it.
 */
export function docsPage(document: OpenApiDocument, servedByApi = false): string {
  const { info, tags, paths, components } = document;
  const all = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );
  const groups = tags.map((tag) => ({ ...tag, own: all.filter((each) => each.operation.tags.includes(tag.name)) }));
  const schemas = Object.entries(components.schemas);
  const base = baseOf(document, servedByApi);
  const page = fillHtml(readText('page.html'), {
    title: info.title,
    version: info.version,
    description: prose(info.description),
    contact: info.contact && html`<p>Contact: ${Object.values(info.contact).join(', ')}</p>`,
    base,
    authorization: block('Authorization: Bearer $TOKEN'),
    variables: block(html`export BASE=${base}\nexport TOKEN=wdg_…`),
    style: html`<style>${new Html(readText('page.css'))}</style>`,
    script: html`<script>${new Html(readText('page.js'))}</script>`,
    contents: groups.map(
      ({ name, own }) => html`<p><a href="#tag-${name}">${name}</a></p><ul>
${own.map(({ method, operation }) => html`<li><a href="#${operation.operationId}">${operation.summary} ${methodTag(method)}</a></li>\n`)}</ul>\n`,
    ),
    schemaLinks: schemas.map(([name]) => html`<li><a href="#schema-${name}">${name}</a></li>\n`),
    authentication: Object.values(components.securitySchemes).map(({ description }) => prose(String(description))),
    operations: groups.map(
      (tag) => html`<section id="tag-${tag.name}"><h2>${tag.name}</h2>${prose(tag.description)}
${tag.own.map(({ path, method, operation }) => operationArticle(document, [path, method, operation], servedByApi))}</section>\n`,
    ),
    schemas: schemas.map(
      ([name, schema]) => html`<article id="schema-${name}" data-found><h3><code>${name}</code></h3>
${prose(String(schema.description ?? ''))}${schemaMembers(schema)}</article>\n`,
    ),
    errors: errorTerms(document),
    headers: headerTerms(document),
  }).text;
  return page.replace(
    '<head>',
    () => `<head>\n<meta http-equiv="Content-Security-Policy" content="${pagePolicy(page, servedByApi)}">`,
  );
}

/** The address of the API; of a relative address, which goes by the document's own, the gateway's name is left open. */
function baseOf({ servers }: OpenApiDocument, servedByApi: boolean): Html {
  const url = servers[0]?.url ?? '';
  if (!url.startsWith('/')) return html`${url}`;
  return servedByApi ? html`<span data-path="${url}">https://…${url}</span>` : html`https://…${url}`;
}

/** A row per error code, in the order of their statuses. */
function errorTerms(document: OpenApiDocument): Html {
  const common = new Set(commonHeaders(document));
  const rows = new Map<string, readonly [status: string, term: Html, headers: Html, title: string]>();
  for (const { content, headers } of allResponses(document)) {
    const properties = content?.['application/problem+json']?.schema.properties as ProblemMembers | undefined;
    const names = Object.keys(headers).filter((name) => !common.has(name) && !name.startsWith('RateLimit'));
    properties?.code.enum.forEach((code, i) => {
      const title = properties.title.enum[i] as string;
      const [status] = properties.status.enum;
      rows.set(code, [String(status), html`${status as string} <code>${code}</code>`, headerNames(names), title]);
    });
  }
  const sorted = [...rows.values()].sort(([a], [b]) => Number(a) - Number(b));
  return terms(sorted.map(([, term, headers, title]) => [term, headers, title]));
}

type ProblemMembers = Readonly<Record<'code' | 'title' | 'status', { readonly enum: readonly string[] }>>;

/** A row per header, with an example. */
function headerTerms(document: OpenApiDocument): Html {
  const all = new Map<string, Header>();
  for (const { headers } of allResponses(document)) {
    for (const [name, reference] of Object.entries(headers))
      all.set(name, all.get(name) ?? resolve(document, reference));
  }
  const common = new Set(commonHeaders(document));
  const rows = [...all].map(([name, { description, schema, example }]) => {
    const place = common.has(name) ? 'every response' : 'where named';
    const shown = example === undefined ? '' : html` Example: ${code(String(example))}`;
    return [
      html`<code>${name}</code>`,
      `${place}, ${schemaProse(schema)}`,
      [...spans(description), html`${shown}`],
    ] as const;
  });
  return terms(rows);
}
