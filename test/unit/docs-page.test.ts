import { rmSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { loadResources } from '../../src/definition/load.js';
import { openapi } from '../../src/openapi/openapi.js';
import { docsPage } from '../../src/openapi/page.js';
import { loadSettings } from '../../src/settings.js';
import { output, toolsInstalled, toolsMissing, workFolder } from '../support/client-tools.js';
import { samplesOf } from '../support/samples.js';

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

test('the page fetches nothing, and its only script is its own', (t) => {
  t.notRegex(page, /<img|<iframe| src=| on\w+="|@import|\burl\(/);
  t.notRegex(page, / href="(?!#|data:)/);
  t.is(page.match(/<script/g)?.length, 1);
});

test('the page escapes every text of the document', (t) => {
  const hostile = docsPage({
    ...document,
    info: { ...document.info, title: '<script>alert(1)</script>', description: '`"><img src=x>`' },
    tags: [{ name: 'klanten', description: '<b onclick="x">' }],
  });
  t.notRegex(hostile, /<script>alert|<img|<b /);
  t.true(hostile.includes('&#60;script&#62;'));
});

test('without PUBLIC_URL the page of the API listener shows its own address, and any other page leaves it open', (t) => {
  t.true(docsPage(document, true).includes('export BASE=<span data-path="/api/v1">https://…/api/v1</span>'));
  t.true(page.includes('export BASE=https://…/api/v1\n'));
});

test('each operation has a sample in curl, Python and JavaScript, and each operation that reads in Power Query', (t) => {
  const operations = Object.values(document.paths).flatMap((item) => Object.entries(item));
  const all = operations.map(([, { operationId }]) => operationId);
  const reads = operations.filter(([method]) => method === 'get').map(([, { operationId }]) => operationId);
  for (const language of ['curl', 'python', 'javascript'])
    t.deepEqual([...samplesOf(page, language).keys()].sort(), all.sort());
  t.deepEqual([...samplesOf(page, 'powerquery').keys()].sort(), reads.sort());
});

test('the samples of a change have the key, the version and the body, in the words of each language', (t) => {
  const [curl, python, javaScript] = ['curl', 'python', 'javascript'].map((language) =>
    samplesOf(page, language).get('updateInstallatie'),
  ) as [string, string, string];
  for (const line of ['-X PATCH "$BASE/installaties/$ID"', '-H "Idempotency-Key: $(uuidgen)"', `-H 'If-Match: "v3"'`])
    t.true(curl.includes(line), line);
  t.true(curl.includes('"omschrijving": null'));
  for (const part of ['import os, requests, uuid', 'requests.patch(', '"If-Match": "\\"v3\\""', '"omschrijving": None'])
    t.true(python.includes(part), part);
  for (const part of ["method: 'PATCH'", '"If-Match": "\\"v3\\"",', '"omschrijving": null'])
    t.true(javaScript.includes(part), part);
});

(toolsInstalled ? test : test.skip)(
  `Microsoft's parser reads each sample in Power Query, and its address is the parameter BASE${toolsMissing}`,
  async (t) => {
    const samples = Object.fromEntries([...samplesOf(page, 'powerquery')].map(([id, text]) => [`${id}.pq`, text]));
    const folder = workFolder(samples);
    t.teardown(() => rmSync(folder, { recursive: true }));
    const files = Object.keys(samples).map((name) => join(folder, name));
    const calls = JSON.parse(await output(process.execPath, ['powerquery.mjs', ...files])) as {
      text: string;
      names: string[];
    }[];
    t.is(calls.length, files.length);
    for (const { text } of calls) t.is(text, 'BASE');
    t.deepEqual(calls[files.findIndex((file) => file.endsWith('/listKlanten.pq'))]?.names, [
      'RelativePath',
      'Query',
      'Headers',
    ]);
  },
);
