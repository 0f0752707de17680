import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { loadResources } from '../../src/definition/load.js';
import { projectRoot } from '../../src/paths.js';

// Airbyte, dlt and Grafana cannot be installed from a registry that the tests use: their recipes are compared with the API.

const read = (page: string): string => readFileSync(join(projectRoot, 'docs/clients', page), 'utf8');
const resources = new Map(loadResources('').map((resource) => [resource.name, resource]));
const fieldsOf = (list: string): string[] => Object.keys(resources.get(list)?.fields ?? {});
const all = (text: string, pattern: RegExp): string[] =>
  [...text.matchAll(pattern)].map(([, found]) => found as string);

test("Airbyte's manifest has the members of a work order and the parameters of its list", (t) => {
  const manifest = read('airbyte.md');
  t.deepEqual(all(manifest, /^ {10}(\w+): \{ type: /gm), fieldsOf('werkbonnen'));
  t.deepEqual(all(manifest, /field_name: (\w+)/g), ['updatedSince', 'cursor', 'perPage']);
  t.true(all(manifest, /path: \/(\w+)/g).every((list) => resources.has(list)));
});

test('the sources of dlt are the four lists, and incremental where a list takes updatedSince', (t) => {
  const [dlt] = all(read('python.md'), /"resources": \[(.*?)\n {4}\]/gs) as [string];
  const lists = all(dlt, /"path": "(\w+)"/g);
  t.deepEqual([...lists, ...all(dlt, /^ {8}"(\w+)",$/gm)].sort(), [...resources.keys()].sort());
  for (const [name, { filters }] of resources) t.is(lists.includes(name), 'updatedSince' in filters, name);
});

test("Grafana's query has members of a work order and parameters of its list", (t) => {
  const [query] = all(read('grafana.md'), /```json\n(.*?)```/gs).map((text) => JSON.parse(text));
  t.is(query.url, '/werkbonnen');
  for (const { selector } of query.columns) t.true(fieldsOf('werkbonnen').includes(selector), selector);
  for (const { key } of query.url_options.params) t.true(key in (resources.get('werkbonnen')?.filters ?? {}), key);
  t.is(query.pagination_param_cursor_extraction_path, 'pagination.nextCursor');
});
