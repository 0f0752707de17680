import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { build } from 'esbuild';
import { parse } from 'yaml';
import { projectRoot } from '../../src/base/paths.js';
import { toolsFolder, toolsInstalled, toolsMissing, workFolder } from '../support/client-tools.js';

// The files in .github, against GitHub's own parser of workflows and against the project that they name.

const read = (path: string): string => readFileSync(join(projectRoot, path), 'utf8');
const workflows = ['ci', 'release'].map((name) => `.github/workflows/${name}.yml`);

interface Parser {
  readonly NoOperationTraceWriter: new () => object;
  parseWorkflow(file: object, trace: object): { context: { errors: { getErrors(): { message: string }[] } } };
}

/** The parser imports JSON in a form that Node 20 refuses, so it becomes one file first. */
async function loadParser(): Promise<Parser> {
  const outfile = join(workFolder({}), 'parser.cjs');
  const entry = join(toolsFolder, 'node_modules/@actions/workflow-parser/dist/index.js');
  await build({ entryPoints: [entry], bundle: true, platform: 'node', format: 'cjs', outfile, logLevel: 'error' });
  return ((await import(outfile)) as { default: Parser }).default;
}

(toolsInstalled ? test : test.skip)(`GitHub's parser finds no fault in the workflows${toolsMissing}`, async (t) => {
  const { NoOperationTraceWriter, parseWorkflow } = await loadParser();
  const faultsIn = (name: string, content: string): string[] =>
    parseWorkflow({ name, content }, new NoOperationTraceWriter())
      .context.errors.getErrors()
      .map(({ message }) => message);
  t.deepEqual(
    workflows.flatMap((path) => faultsIn(path, read(path))),
    [],
  );
  t.is(faultsIn('wrong.yml', read('.github/workflows/ci.yml').replace('steps:', 'stepz:')).length > 0, true);
});

test('the workflows call .ci/run, build arguments that the Dockerfile has, and packages of the project', (t) => {
  t.regex(read('.github/workflows/ci.yml'), /bash \.ci\/run/);
  const release = read('.github/workflows/release.yml');
  const passed = [...release.matchAll(/^ +([A-Z]+)=\$\{\{/gm)].map(([, name]) => name);
  const declared = [...read('Dockerfile').matchAll(/^ARG ([A-Z]+)=/gm)].map(([, name]) => name);
  t.deepEqual(
    passed.filter((name) => !declared.includes(name)),
    [],
  );
  const { name } = JSON.parse(read('pull/package.json')) as { name: string };
  t.true(release.includes(`-w ${name}`));
});

test('each form has a title, labels of its fields, and ids that differ', (t) => {
  for (const form of ['bug', 'question', 'security']) {
    const { name, description, body } = parse(read(`.github/ISSUE_TEMPLATE/${form}.yml`)) as {
      name: string;
      description: string;
      body: { type: string; id?: string; attributes: { label?: string; value?: string } }[];
    };
    t.true(name.length > 0 && description.length > 0, form);
    const ids = body.flatMap(({ id }) => id ?? []);
    t.is(new Set(ids).size, ids.length, form);
    t.true(
      body.every(({ type, attributes }) => type === 'markdown' || (attributes.label ?? '').length > 0),
      form,
    );
  }
});
