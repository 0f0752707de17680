import { allResponses, type Header, type OpenApiDocument, resolve } from './document.js';
import { fillHtml, Html, html, prose, spans, table } from './html.js';
import { commonHeaders, operationArticle } from './page-operation.js';
import { schemaProse, schemaTable } from './page-schema.js';
import { readText } from './template.js';

/**
 * The OpenAPI document as a static page of HTML: no script, nothing from elsewhere. Its only style is an inline style
 * element, which a Content-Security-Policy must allow. It escapes every text of the document.
 */
export function docsPage(document: OpenApiDocument): string {
  const { info, servers, tags, paths, components } = document;
  const all = Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );
  const groups = tags.map((tag) => ({ ...tag, own: all.filter((each) => each.operation.tags.includes(tag.name)) }));
  return fillHtml(readText('page.html'), {
    title: info.title,
    version: info.version,
    description: prose(info.description),
    address: servers[0]?.url,
    style: html`<style>${new Html(readText('page.css'))}</style>`,
    contents: groups.map(
      (tag) => html`<li><a href="#tag-${tag.name}">${tag.name}</a><ul>
${tag.own.map(({ path, method, operation }) => html`<li><a href="#${operation.operationId}">${method.toUpperCase()} ${path}</a></li>\n`)}</ul></li>\n`,
    ),
    authentication: Object.values(components.securitySchemes).map(({ description }) => prose(String(description))),
    operations: groups.map(
      (tag) => html`<section id="tag-${tag.name}"><h2>${tag.name}</h2>${prose(tag.description)}
${tag.own.map(({ path, method, operation }) => operationArticle(document, path, method, operation))}</section>\n`,
    ),
    schemas: Object.entries(components.schemas).map(
      ([name, schema]) => html`<article id="schema-${name}"><h3><code>${name}</code></h3>
${prose(String(schema.description ?? ''))}${schemaTable(`Members of ${name}`, schema)}</article>\n`,
    ),
    errors: errorTable(document),
    headers: headerTable(document),
  }).text;
}

/** A row per error code, in the order of their statuses. */
function errorTable(document: OpenApiDocument): Html {
  const common = new Set(commonHeaders(document));
  const rows = new Map<string, (string | Html | Html[])[]>();
  for (const { content, headers } of allResponses(document)) {
    const properties = content?.['application/problem+json']?.schema.properties as ProblemMembers | undefined;
    const names = Object.keys(headers).filter((name) => !common.has(name) && !name.startsWith('RateLimit'));
    const own = names.map((name) => html`<code>${name}</code> `);
    properties?.code.enum.forEach((code, i) => {
      const title = properties.title.enum[i] as string;
      const [status] = properties.status.enum;
      rows.set(code, [String(status), html`<code>${code}</code>`, title, own]);
    });
  }
  const sorted = [...rows.values()].sort(([a], [b]) => Number(a) - Number(b));
  return table('Errors', ['Status', 'Code', 'Title', 'Headers'], sorted);
}

type ProblemMembers = Readonly<Record<'code' | 'title' | 'status', { readonly enum: readonly string[] }>>;

/** A row per header, with an example. */
function headerTable(document: OpenApiDocument): Html {
  const all = new Map<string, Header>();
  for (const { headers } of allResponses(document)) {
    for (const [name, reference] of Object.entries(headers))
      all.set(name, all.get(name) ?? resolve(document, reference));
  }
  const common = new Set(commonHeaders(document));
  const rows = [...all].map(([name, { description, schema, example }]) => [
    html`<code>${name}</code>`,
    common.has(name) ? 'every response' : 'where named',
    schemaProse(schema),
    [...spans(description), html`${example === undefined ? '' : html` Example: <code>${String(example)}</code>`}`],
  ]);
  return table('Response headers', ['Name', 'On', 'Value', 'Description'], rows);
}
