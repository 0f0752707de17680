import test from 'ava';
import { loadResources } from '../../src/definition/load.js';
import { openapi } from '../../src/openapi/openapi.js';
import { docsPage } from '../../src/openapi/page.js';
import { loadSettings } from '../../src/settings.js';

const resources = loadResources('');
const document = openapi(resources, {
  version: '1.0.0',
  ...loadSettings({}, { primaryUrls: 'postgres://primary/app' }),
});
const page = docsPage(document);

test('the page names every path, schema, error code and header', (t) => {
  for (const path of Object.keys(document.paths)) t.true(page.includes(path), path);
  for (const name of Object.keys(document.components.schemas)) t.true(page.includes(`id="schema-${name}"`), name);
  for (const code of JSON.stringify(document.components.schemas.Problem).match(/(?<=problem:)\w+/g) ?? []) {
    t.true(page.includes(`<code>${code}</code>`), code);
  }
  for (const { headers } of Object.values(document.components.responses)) {
    for (const name of Object.keys(headers)) t.true(page.includes(`<code>${name}</code>`), name);
  }
});

test('every link within the page leads somewhere, and no id occurs twice', (t) => {
  const ids = [...page.matchAll(/ id="([^"]+)"/g)].map(([, id]) => id);
  t.is(new Set(ids).size, ids.length);
  for (const [, target] of page.matchAll(/ href="#([^"]+)"/g)) t.true(ids.includes(target), target);
});

test('the page loads nothing and runs nothing', (t) => {
  t.notRegex(page, /<script|<link|<img|<iframe| src=| on\w+="|@import|url\(/i);
  t.notRegex(page, / href="[^#]/);
});

test('the page escapes every text of the document', (t) => {
  const hostile = docsPage({
    ...document,
    info: { ...document.info, title: '<script>alert(1)</script>', description: '`"><img src=x>`' },
    tags: [{ name: 'klanten', description: '<b onclick="x">' }],
  });
  t.notRegex(hostile, /<script|<img|<b /);
  t.true(hostile.includes('&#60;script&#62;'));
});
