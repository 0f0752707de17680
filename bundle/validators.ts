import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import standalone from 'ajv/dist/standalone/index.js';
import { projectRoot } from '../src/base/paths.js';

// The second half of `npm run build`: ajv's code for the two schemas that do not depend on an operator's definitions (a start that
// compiled them itself took 40 ms more, and 3 MB), and the script of the docs page.

const built = join(import.meta.dirname, '..');
const folder = join(built, 'src/resource/definition');
const options = {
  strictTypes: false,
  strictRequired: false,
  validateSchema: false, // both are known to be right: ours by a test
  code: { source: true },
};

// verbose: a flaw is told in the words of its schema, its `errorMessage`.
const definition = new Ajv2020({ ...options, allErrors: true, useDefaults: true, verbose: true });
definition.addVocabulary(['errorMessage']);
const schema = JSON.parse(readFileSync(join(projectRoot, 'config/resource.schema.json'), 'utf8')) as object;
write('definition-validator', definition, definition.compile(schema));

const json = new Ajv2020(options);
write('json-schema-validator', json, json.getSchema('https://json-schema.org/draft/2020-12/schema'));

const explorer = join(projectRoot, 'node_modules/openapi-explorer');
const copies = { 'dist/browser/openapi-explorer.min.js': 'openapi-explorer.js', LICENSE: 'openapi-explorer.LICENSE' };
// A clone that was installed before the package came in misses the docs page, and nothing else.
if (existsSync(explorer))
  for (const [from, to] of Object.entries(copies)) copyFileSync(join(explorer, from), join(built, 'bundle', to));

function write(name: string, ...[ajv, validate]: Parameters<typeof standalone.default>): void {
  writeFileSync(join(folder, `${name}.cjs`), standalone.default(ajv, validate));
}
