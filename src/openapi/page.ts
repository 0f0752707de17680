import { type Header, type OpenApiDocument, resolve } from './document.js';
import { Html, html, prose, spans, table } from './html.js';
import { commonHeaders, operationArticle } from './page-operation.js';
import { schemaProse, schemaTable } from './page-schema.js';
import { style } from './page-style.js';

/**
 * The OpenAPI document as one static page of HTML: no script, nothing from elsewhere. Its only style is one inline
 * style element, for which a Content-Security-Policy must leave room. Everything from the document is escaped.
 */
export function docsPage(document: OpenApiDocument): string {
  const { title, version, description } = document.info;
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title} ${version}</title>
<style>${new Html(style)}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
${navigation(document)}
<main id="content">
<h1>${title} <small>${version}</small></h1>
${prose(description)}
<p>Address: <code>${document.servers[0]?.url}</code></p>
${authentication(document)}
${endpoints(document)}
${records(document)}
${errors(document)}
${headers(document)}
</main>
</body>
</html>
`.text;
}

function navigation(document: OpenApiDocument): Html {
  const groups = document.tags.map(
    ({ name }) => html`<li><a href="#tag-${name}">${name}</a><ul>
${operationsOf(document, name).map(
  ({ path, method, operation }) =>
    html`<li><a href="#${operation.operationId}">${method.toUpperCase()} ${path}</a></li>\n`,
)}</ul></li>\n`,
  );
  return html`<nav aria-label="Contents"><ul>
<li><a href="#authentication">Authentication</a></li>
${groups}
<li><a href="#schemas">Schemas</a></li>
<li><a href="#errors">Errors</a></li>
<li><a href="#headers">Response headers</a></li>
</ul></nav>`;
}

function authentication({ components }: OpenApiDocument): Html {
  const schemes = Object.values(components.securitySchemes).map(({ description }) => prose(String(description)));
  return html`<section id="authentication"><h2>Authentication</h2>
${schemes.flat()}
<pre><code>Authorization: Bearer $TOKEN</code></pre></section>`;
}

function endpoints(document: OpenApiDocument): Html[] {
  return document.tags.map(
    ({ name, description }) => html`<section id="tag-${name}"><h2>${name}</h2>${prose(description)}
${operationsOf(document, name).map(({ path, method, operation }) => operationArticle(document, path, method, operation))}</section>\n`,
  );
}

function records({ components }: OpenApiDocument): Html {
  return html`<section id="schemas"><h2>Schemas</h2>${Object.entries(components.schemas).map(
    ([name, schema]) => html`<article id="schema-${name}"><h3><code>${name}</code></h3>
${prose(String(schema.description ?? ''))}${schemaTable(`Members of ${name}`, schema)}</article>\n`,
  )}</section>`;
}

/** One row per code. */
function errors(document: OpenApiDocument): Html {
  const common = new Set(commonHeaders(document));
  const rows = new Map<string, (string | Html | Html[])[]>();
  for (const { content, headers: own } of Object.values(document.components.responses)) {
    const properties = content?.['application/problem+json']?.schema.properties as ProblemMembers | undefined;
    const names = Object.keys(own).filter((name) => !common.has(name) && !name.startsWith('RateLimit'));
    properties?.code.enum.forEach((code, i) => {
      const title = properties.title.enum[i] as string;
      rows.set(code, [
        String(properties.status.enum[0]),
        html`<code>${code}</code>`,
        title,
        names.map((name) => html`<code>${name}</code> `),
      ]);
    });
  }
  const sorted = [...rows.values()].sort(([a], [b]) => Number(a) - Number(b));
  return html`<section id="errors"><h2>Errors</h2>
<p>Bodies are <code>application/problem+json</code>, see <a href="#schema-problem">problem</a>. Paths and methods that are not described here give 404 and 405.</p>
${table('Errors', ['Status', 'Code', 'Title', 'Headers'], sorted)}</section>`;
}

type ProblemMembers = Readonly<Record<'code' | 'title' | 'status', { readonly enum: readonly string[] }>>;

function headers(document: OpenApiDocument): Html {
  const all = new Map<string, Header>();
  for (const response of Object.values(document.components.responses)) {
    for (const [name, reference] of Object.entries(response.headers))
      all.set(name, all.get(name) ?? resolve<Header>(document, reference));
  }
  const common = new Set(commonHeaders(document));
  const rows = [...all].map(([name, { description, schema, example }]) => [
    html`<code>${name}</code>`,
    common.has(name) ? 'every response' : 'where named',
    schemaProse(schema),
    [...spans(description), html`${example === undefined ? '' : html` Example: <code>${String(example)}</code>`}`],
  ]);
  return html`<section id="headers"><h2>Response headers</h2>${table('Response headers', ['Name', 'On', 'Value', 'Description'], rows)}</section>`;
}

type Listed = { path: string; method: string; operation: OpenApiDocument['paths'][string]['get'] & object };

/** The operations of a tag, or all; HEAD and OPTIONS are told of once, in the introduction. */
function operationsOf({ paths }: OpenApiDocument, tag?: string): Listed[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(
        ([method, { tags }]) => method !== 'head' && method !== 'options' && (tag === undefined || tags.includes(tag)),
      )
      .map(([method, operation]) => ({ path, method, operation })),
  );
}
