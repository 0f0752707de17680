import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { projectRoot } from '../src/paths.js';
import { importsOf, type Source, sourcesIn } from './support/sources.js';

const src = sourcesIn('src', '.ts');
const tests = [
  ...sourcesIn('test', '.ts'),
  ...(existsSync(join(projectRoot, 'bench')) ? sourcesIn('bench', '.ts') : []),
];
const all = [...src, ...tests];
const sql = sourcesIn('sql', '.sql');
const imports = src.flatMap(importsOf);

/** From the bottom up: what stands further down may import what stands above it, and nothing else. */
const layers = [
  'paths.ts',
  'errors.ts',
  'settings.ts',
  'events.ts',
  'db/row.ts',
  'db/statement.ts',
  'db/wal-position.ts',
  'projection',
  'definition',
  'db',
  'read',
  'write',
  'openapi',
  'check',
  'migrate',
  'http',
  'peers',
  'ops',
  'app.ts',
  'gateway.ts',
  'workers.ts',
  'cli',
  'demo',
  'main.ts',
];

/** Fences within the layers: who may import from the folder at all, and what of it. */
const fences: Readonly<Record<string, (importer: string, imported: string) => boolean>> = {
  demo: (importer) => importer === 'main.ts',
  ops: (importer) => importer === 'gateway.ts' || importer === 'workers.ts',
  read: (importer, imported) => !importer.startsWith('write/') || /^read\/(etag|reply)\.ts$/.test(imported),
};

test('imports point downwards only', (t) => {
  const layerOf = (file: string): string | undefined =>
    layers.includes(file) ? file : layers.find((layer) => file.startsWith(`${layer}/`));
  const wrong: string[] = [];
  for (const { from, to, runs } of imports) {
    if (runs) continue;
    if (!to.startsWith('src/')) {
      wrong.push(`${from} imports ${to}, which is not part of the product`);
      continue;
    }
    const [importer, imported] = [from.slice('src/'.length), to.slice('src/'.length)];
    const [above, below] = [layerOf(importer), layerOf(imported)];
    if (above === undefined) wrong.push(`${from} is in no layer: give it one here`);
    else if (below === undefined) wrong.push(`${to} is in no layer: give it one here`);
    else if (above === below) continue;
    else if (layers.indexOf(below) > layers.indexOf(above)) wrong.push(`${from} imports ${to}, which stands above it`);
    else if (fences[below.split('/')[0] as string]?.(importer, imported) === false)
      wrong.push(`${from} may not import ${to}`);
  }
  t.deepEqual(wrong, []);
});

test('no file imports itself by way of others, types aside', (t) => {
  const runtime = new Map<string, string[]>();
  for (const source of src) {
    const code = source.code
      .replace(/^import type [\s\S]*?;$/gm, '')
      .replace(/import \{((?:\s*type \w+,?)+)\s*\} from '[^']+';/g, '');
    runtime.set(
      source.path,
      importsOf({ ...source, code: code.replace(/new URL\([^)]*\)/g, '') }).map(({ to }) => to),
    );
  }
  const circles: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]): void => {
    if (way.includes(path)) circles.push([...way.slice(way.indexOf(path)), path].join(' → '));
    if (way.includes(path) || done.has(path)) return;
    for (const next of runtime.get(path) ?? []) visit(next, [...way, path]);
    done.add(path);
  };
  for (const { path } of src) visit(path, []);
  t.deepEqual(circles, []);
});

test('every file is reached from main.ts', (t) => {
  const reached = new Set<string>();
  const visit = (path: string): void => {
    if (reached.has(path)) return;
    reached.add(path);
    for (const { from, to } of imports) if (from === path) visit(to);
  };
  visit('src/main.ts');
  t.deepEqual(
    src.map(({ path }) => path).filter((path) => !reached.has(path)),
    [],
  );
});

test('every export is used elsewhere', (t) => {
  const used = new Set<string>();
  for (const { to, names } of all.flatMap(importsOf)) for (const name of names) used.add(`${to} ${name}`);
  const unused: string[] = [];
  for (const { path, code } of src) {
    if (used.has(`${path} *`)) continue;
    for (const [, kind, name] of code.matchAll(
      /^export (?:abstract |async )?(function\*?|const|class|interface|type|enum) (\w+)/gm,
    )) {
      if (used.has(`${path} ${name}`)) continue;
      // A type that others meet in a signature of this file is of use without being imported.
      const mentions = code.split(new RegExp(`\\b${name}\\b`)).length - 1;
      if ((kind === 'interface' || kind === 'type') && mentions > 1) continue;
      unused.push(`${path} ${name}`);
    }
  }
  t.deepEqual(unused, []);
});

test('no file is longer than 300 lines', (t) => {
  const tooLong = [...all, ...sql].filter(({ text }) => text.split('\n').length > 301).map(({ path }) => path);
  t.deepEqual(tooLong, []);
});

test('folders and files are named after what lives there', (t) => {
  const vague = /(^|\/)(utils?|helpers?|services?|controllers?|managers?|common|misc|lib)(\/|\.ts$)|(^|\/)index\.ts$/i;
  t.deepEqual(
    all.map(({ path }) => path).filter((path) => vague.test(path)),
    [],
  );
});

/** What may not be in code, and where it may nevertheless. */
const forbidden: readonly { readonly what: string; readonly pattern: RegExp; readonly allowed?: RegExp }[] = [
  { what: 'any', pattern: /(?:[:<|&,(]|\bas)\s*any\b(?=\s*[[\]>,;)|&=]|$)/m },
  {
    what: 'a suppressed type error',
    pattern: new RegExp(`@ts-(?:${['ignore', 'nocheck', 'expect-error'].join('|')})`),
  },
  { what: 'console', pattern: /\bconsole\.\w+\(/, allowed: /^(test|bench)\// },
  // Settings come from the command that was called; the embedded servers take PG_BIN and PATH, which are no settings.
  {
    what: 'process.env',
    pattern: /process\.env\b/,
    allowed: /^(test|bench)\/|^src\/(cli|demo)\//,
  },
  {
    what: "use of pg's private parts",
    pattern:
      /\b(?:parsedStatements|submittedNamedStatements|handleDataRow|extends pg\.(?:Query|Connection)|as unknown as \{ connection)\b/,
    allowed: /^test\/|^src\/db\/wire\//,
  },
  {
    what: 'SQL',
    pattern:
      /[`'"](?:select (?!the )|insert into |update \w+\.|delete from |with \w+ as \(|begin\b(?=[ '"])|alter (?:table|role|index) |drop (?:table|index|database) )/i,
    allowed:
      /^test\/|^bench\/|^src\/(db|demo|check|migrate)\/|^src\/write\/(transaction|idempotency-expiry)\.ts$|^src\/http\/auth\.ts$|^src\/cli\/token-store\.ts$/,
  },
];

for (const { what, pattern, allowed } of forbidden) {
  test(`there is no ${what} where it does not belong`, (t) => {
    const where = (source: Source): string[] =>
      source.text !== source.code && what.startsWith('a supp') ? [source.text] : [source.code];
    const found = all.filter(
      (source) => !allowed?.test(source.path) && where(source).some((text) => pattern.test(text)),
    );
    t.deepEqual(
      found.map(({ path }) => path).filter((path) => path !== 'test/tidy.test.ts'),
      [],
    );
  });
}

test('nothing is left to be done later', (t) => {
  const later = new RegExp(`\\b(${['TO' + 'DO', 'FIX' + 'ME', 'X' + 'XX', 'HA' + 'CK'].join('|')})\\b`);
  const texts = [...all, ...sql, ...sourcesIn('docs', '.md'), ...sourcesIn('config', '.json')];
  t.deepEqual(
    texts.filter(({ text }) => later.test(text)).map(({ path }) => path),
    [],
  );
});

test('every SQL file says why it is as it is', (t) => {
  t.deepEqual(
    sql.filter(({ text }) => !/^-- \S/.test(text)).map(({ path }) => path),
    [],
  );
});

test('package-lock.json names no download address', (t) => {
  const { packages } = JSON.parse(readFileSync(join(projectRoot, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { resolved?: string }>;
  };
  t.deepEqual(
    Object.entries(packages).filter(([, { resolved }]) => resolved?.includes('http')),
    [],
  );
});

test('what the product imports is among its dependencies', (t) => {
  const { dependencies } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  const missing = src.flatMap(({ path, code }) =>
    [...code.matchAll(/^import [^;']*?'([^.'][^']*)';|import\('([^.'][^']*)'\)/gms)]
      .map(([, name, loaded]) => (name ?? loaded) as string)
      .filter((name) => !name.startsWith('node:'))
      .map((name) =>
        name
          .split('/')
          .slice(0, name.startsWith('@') ? 2 : 1)
          .join('/'),
      )
      .filter((name) => !Object.hasOwn(dependencies, name))
      .map((name) => `${path}: ${name}`),
  );
  t.deepEqual(missing, []);
});

test('the changelog has an entry for this version', (t) => {
  const { version } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8')) as { version: string };
  t.regex(
    readFileSync(join(projectRoot, 'CHANGELOG.md'), 'utf8'),
    new RegExp(`^## \\[${version.replaceAll('.', '\\.')}\\] - \\d{4}-\\d{2}-\\d{2}$`, 'm'),
  );
});
