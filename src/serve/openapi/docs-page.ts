import { hash } from 'node:crypto';
import { readProject } from '../../base/paths.js';
import type { OpenApiDocument } from './document.js';
import { fillFile } from './texts.js';

/** Makes the page of openapi-explorer, which loads only the document. `isServedByApi`: the page may send requests. */
export function makeDocsPage(document: OpenApiDocument, isServedByApi = false) {
  const { title, version } = document.info;
  const json = JSON.stringify(document).replaceAll('"x-codeSamples":', '"x-code-samples":'); // the library knows only the older name
  const attributes = isServedByApi ? '' : ' hide-console hide-authentication';
  const body = [
    `<openapi-explorer hide-server-selection default-schema-tab="body" schema-expand-level="1"${attributes}></openapi-explorer>`,
    `<script>${readProject('dist/bundle/openapi-explorer.js')}</script>`,
    `<script>document.querySelector('openapi-explorer').loadSpec(${json.replaceAll('<', '\\u003c')})</script>`,
  ].join('\n');
  const page = fillFile('page.html', { title, version, body });
  const policy = makePagePolicy(page, isServedByApi, "'unsafe-inline'"); // for the style attributes of the library
  const head = `<head>\n<meta http-equiv="Content-Security-Policy" content="${policy}">`;
  return { html: page.replace('<head>', () => head), policy };
}

/** Allows the page's own scripts by their hashes (CSP Level 3 §2.3.1), and connections only if it makes any. */
export function makePagePolicy(page: string, connects: boolean, style = listHashes(page, 'style')): string {
  const connect = connects ? "; connect-src 'self'" : '';
  return `default-src 'none'; style-src ${style}; script-src ${listHashes(page, 'script')}; img-src data:; base-uri 'none'; form-action 'none'${connect}`;
}

function listHashes(page: string, tag: 'style' | 'script'): string {
  const elements = page.matchAll(new RegExp(`<${tag}>([\\s\\S]*?)</${tag}>`, 'g'));
  return [...elements].map(([, text]) => `'sha256-${hash('sha256', String(text), 'base64')}'`).join(' ');
}
