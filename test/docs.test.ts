import { spawnSync } from 'node:child_process';
import { existsSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import test from 'ava';
import { nodeEnvironment, nodeFlags } from '../bundle/node-flags.js';
import { settingsPage } from '../bundle/settings-page.js';
import { fieldErrors, problems } from '../src/base/errors.js';
import { type Event, type EventMetric, events } from '../src/base/events.js';
import { projectRoot, readProject as read } from '../src/base/paths.js';
import { readAdvice } from '../src/doctor/finding.js';
import { loadResources } from '../src/resource/definition/load.js';
import { listLeaves } from '../src/resource/definition/resource.js';
import { gauges } from '../src/serve/ops/metrics.js';
import { getEnvironmentName, readSettingsSchema } from '../src/settings.js';
import { importsOf, sourcesIn } from './support/sources.js';
import { words } from './support/words.js';

const resources = loadResources('');
const pages = [
  'README.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'SECURITY.md',
  ...sourcesIn('docs', '.md').map(({ path }) => path),
];
const app = read('docs/reference/reference-app.md');

function section(page: string, heading: string): string {
  const start = page.indexOf(`\n${heading}\n`);
  if (start < 0) throw new Error(`There is no heading "${heading}".`);
  const level = (/^#+/.exec(heading) as RegExpExecArray)[0].length;
  const rest = page.slice(start + heading.length + 2);
  const end = rest.search(new RegExp(`^#{1,${level}} `, 'm'));
  return end < 0 ? rest : rest.slice(0, end);
}

test('docs/reference/settings.md is what the schema of the settings says: run `npm run docs` after a change', (t) => {
  t.is(read('docs/reference/settings.md'), settingsPage());
});

test("the image, `npm start` and the systemd unit start `serve` with Node's flags for it, and image and unit with the environment", (t) => {
  const flags = nodeFlags.join(' ');
  t.true(read('package.json').includes(`"start": "node ${flags} dist`));
  const command = JSON.stringify(['node', ...nodeFlags]).replaceAll(',', ', ');
  t.true(read('Dockerfile').includes(`CMD ${command.slice(0, -1)}, `));
  const unit = read('deploy/systemd/workspace-data-gateway.service');
  t.true(unit.includes(`ExecStart=/usr/bin/node ${flags} /`));
  for (const [name, value] of Object.entries(nodeEnvironment)) {
    t.regex(read('Dockerfile'), new RegExp(`^ENV .*\\b${name}=${value}\\b`, 'm'));
    t.regex(unit, new RegExp(`^Environment=.*\\b${name}=${value}\\b`, 'm'));
  }
});

test('the pages of docs/understand name tests that exist', (t) => {
  const text = ['promises', 'reliability', 'security'].map((page) => read(`docs/understand/${page}.md`)).join('');
  const named = [...text.matchAll(/`((?:fault|feature|unit|soak)\/[\w.-]+)`/g)].map(([, name]) => name);
  t.true(named.length > 20);
  const missing = named.filter(
    (name) => !['.test.ts', '.ts'].some((end) => existsSync(join(projectRoot, `test/${name}${end}`))),
  );
  t.deepEqual(missing, []);
});

test('settings that the documentation speaks of exist', (t) => {
  const known = new Set(Object.keys(readSettingsSchema().properties).map(getEnvironmentName));
  const others = new Set([
    ...['CONFIG_FILE', 'PG_BIN', 'NODE_ENV', 'NODE_OPTIONS', 'POSTGREST_BIN', 'NAME_FILE', 'IMAGE_REGISTRY'],
    ...Object.keys(nodeEnvironment),
  ]);
  for (const page of pages) {
    const named = [...read(page).matchAll(/`([A-Z][A-Z0-9]*_[A-Z0-9_]+)(?:=[^`]*)?`/g)].map(
      ([, name]) => name as string,
    );
    const unknown = named.filter(
      (name) => !known.has(name.replace(/_FILE$/, '')) && !known.has(name) && !others.has(name),
    );
    t.deepEqual(unknown, [], page);
  }
});

test('docs/reference/errors.md has an anchor for every error with its status, and for every code of errors[] with its meaning', (t) => {
  const [byStatus = '', codes = ''] = read('docs/reference/errors.md').split('\n## Codes in `errors[]`\n');
  const described = [...byStatus.matchAll(/^### `(\w+)`\n\n(\d{3})\. \S/gm)].map(
    ([, code, status]) => `${status} ${code}`,
  );
  const rows = Object.entries(problems).map(([code, { status }]) => `${status} ${code}`);
  t.deepEqual(described, rows);
  t.deepEqual(
    codes.split('\n').filter((line) => line.startsWith('| <a')),
    Object.entries(fieldErrors).map(([code, meaning]) => `| <a id="${code}"></a>\`${code}\` | ${meaning} |`),
  );
});

test('docs/reference/reference-app.md lists every resource, filter, scope and field', (t) => {
  for (const resource of resources) {
    const { name, filters, detail, write } = resource;
    t.true(app.includes(`/${name}`) && app.includes(`read:${name}`), name);
    if (detail) t.true(app.includes(`/${name}/{id}`), name);
    if (write) t.true(app.includes(`write:${name}`), name);
    for (const filter of Object.keys(filters)) t.true(app.includes(`\`${filter}\``), filter);
    const fields = listLeaves(resource).flatMap(({ path }) => path);
    const missing = fields.filter((field) => !app.includes(`\`${field}\``));
    t.deepEqual(missing, []);
  }
});

test('docs/reference/definitions.md and docs/adopt/keys.md name every key of a definition', (t) => {
  interface Schema {
    readonly properties?: Record<string, Schema>;
    readonly additionalProperties?: Schema | boolean;
    readonly $defs?: Record<string, Schema>;
  }
  const keys = ({ properties = {}, additionalProperties, $defs = {} }: Schema): string[] => [
    ...Object.keys(properties),
    ...[...Object.values(properties), ...Object.values($defs)].flatMap(keys),
    ...(typeof additionalProperties === 'object' ? keys(additionalProperties) : []),
  ];
  const text = read('docs/reference/definitions.md') + read('docs/adopt/keys.md');
  const all = new Set(keys(JSON.parse(read('config/resource.schema.json'))));
  const missing = [...all].filter((key) => key !== '$schema' && !text.includes(`\`${key}\``));
  t.deepEqual(missing, []);
});

test('docs/reference/views.md names every object of the schema gateway', (t) => {
  const made = [...sourcesIn('sql/core', '.sql'), ...sourcesIn('sql/views', '.sql')].flatMap(({ text }) =>
    [...text.matchAll(/^create (?:view|function|table) (gateway\.\w+)/gm)].map(([, name]) => name as string),
  );
  const missing = made.filter((name) => !read('docs/reference/views.md').includes(name));
  t.deepEqual(missing, []);
});

test('docs/reference/check.md has every finding of check', (t) => {
  const rows = section(read('docs/reference/check.md'), '## Findings').matchAll(/^### `(\w+)`$/gm);
  const codes = [...rows].map(([, code]) => code);
  t.deepEqual(codes, Object.keys(readAdvice()));
});

test('docs/reference/metrics-and-events.md has every metric with its type and labels', (t) => {
  const row = (name: string, type: string, labels: readonly string[]): string =>
    `\`gateway_${name}\` ${[type, labels.join(', ')].filter((part) => part !== '').join(': ')}`;
  const made = [
    ...Object.values(events)
      .flatMap(({ metrics = [] }) => metrics as readonly EventMetric<Event>[])
      .map(({ name, labels = {}, seconds }) =>
        row(seconds ? name : `${name}_total`, seconds ? 'histogram' : 'counter', Object.keys(labels)),
      ),
    ...Object.entries(gauges).map(([name, { labels }]) => row(name, 'gauge', labels)),
  ];
  const listed = [
    ...section(read('docs/reference/metrics-and-events.md'), '## Metrics').matchAll(
      /^\| (`gateway_\w+`) \| ([^|]+) \|/gm,
    ),
  ];
  t.deepEqual(listed.map(([, name, type]) => `${name} ${type}`).sort(), made.sort());
});

test('docs/reference/metrics-and-events.md has every log event with its level', (t) => {
  const made = Object.entries(events).map(([event, { level }]) => `${event} ${level}`);
  const listed = [
    ...section(read('docs/reference/metrics-and-events.md'), '## Log events').matchAll(/^\| `(\w+)` \| (\w+) \|/gm),
  ].map(([, event, level]) => `${event} ${level}`);
  t.deepEqual(listed.sort(), made.sort());
});

test('docs/contribute/architecture.md maps every folder; pages of docs/contribute name functions that exist', (t) => {
  const page = read('docs/contribute/architecture.md');
  const map = section(page, '## Code map');
  const folders = new Set(sourcesIn('src', '.ts').map(({ path }) => dirname(path).split('/').slice(0, 2).join('/')));
  const missing = [...folders].filter((folder) => folder !== 'src' && !map.includes(`**${folder}/**`));
  t.deepEqual(missing, []);
  const code = sourcesIn('src', '.ts').map((source) => source.code);
  const ofSource = sourcesIn('docs/contribute', '.md').filter(({ path }) => !/\/(?:decisions|release)\.md$/.test(path)); // these name libraries, too
  const named = ofSource.flatMap(({ text }) => [...text.matchAll(/`([a-z]+[A-Z]\w*)`/g)].map(([, name]) => name));
  const isDefined = (name = '') => code.some((text) => new RegExp(`\\b(?:function\\*?|const) ${name}\\b`).test(text));
  t.deepEqual([named.length > 0, ...named.filter((name) => !isDefined(name))], [true]);
});

test('the calls of a list in docs/contribute/architecture.md are calls of the code', (t) => {
  const [figure = ''] = /^makeApp[\s\S]*?(?=^```$)/m.exec(read('docs/contribute/architecture.md')) ?? [];
  const calls = [...figure.matchAll(/^( *)(\w+) +(\S+\.ts)/gm)];
  t.is(calls.length, figure.trimEnd().split('\n').length);
  calls.forEach(([, indent = '', name, file], i) => {
    const defined = new RegExp(
      `\\b(?:function|class) ${name}\\b|^ {2}(?:readonly |async )?${name}(?:<\\w+>)?[(:]`,
      'm',
    );
    t.regex(read(`src/${file}`), defined, file);
    const [, , , caller] = calls.slice(0, i).findLast(([, outer = '']) => outer.length < indent.length) ?? [];
    if (caller !== undefined) t.regex(read(`src/${caller}`), new RegExp(`\\b${name}\\(`), `${caller} calls ${name}`);
  });
});

test('docs/contribute/architecture.md says what each room imports, and how large it is', (t) => {
  const map = section(read('docs/contribute/architecture.md'), '## Code map');
  const rows = [...map.matchAll(/^\| `(\w+)` \| ([\d,]+) \| (.*?) ?\|$/gm)];
  t.is(rows.length, 7);
  for (const [, room = '', linesTold = '', importsTold] of rows) {
    const files = sourcesIn(`src/${room}`, '.ts');
    const rooms = files.flatMap(importsOf).map(({ to }) => /^src\/(\w+)\//.exec(to)?.[1]);
    const imported = [...new Set(rooms)].filter((name) => name !== undefined && name !== room).sort();
    t.is(importsTold, imported.map((name) => `\`${name}\``).join(', '), room);
    const lines = files.reduce((sum, { text }) => sum + text.split('\n').length, 0);
    const told = Number(linesTold.replace(',', ''));
    t.true(Math.abs(lines - told) <= told / 10, `${room} has ${lines} lines`);
  }
});

test('files that the documentation names exist', (t) => {
  const src = sourcesIn('src', '.ts').map(({ path }) => path);
  const isThere = (path: string): boolean =>
    existsSync(join(projectRoot, path)) || (path.endsWith('.ts') && src.some((file) => file.endsWith(`/${path}`)));
  const folders = 'src|test|sql|config|deploy|docs|bench|bundle|demo|pull|client|\\.ci|\\.github';
  const namedPath = new RegExp(`\`((?:${folders})/[\\w./-]*\\w|[\\w/-]+\\.ts)\``, 'g');
  for (const page of pages.filter((path) => path !== 'CHANGELOG.md')) {
    const named = [...read(page).matchAll(namedPath)].map(([, path]) => path as string);
    const missing = named.filter((path) => !isThere(path));
    t.deepEqual(missing, [], page);
  }
});

test('test files that CONTRIBUTING.md proposes to run exist', (t) => {
  const patterns = [...read('CONTRIBUTING.md').matchAll(/'dist\/(test\/[^']+)\.test\.js'/g)];
  t.true(patterns.length > 0);
  const tests = sourcesIn('test', '.test.ts').map(({ path }) => path);
  for (const [, pattern = ''] of patterns) {
    const [, before = pattern, names = '', after = ''] = /^(.*)@\((.*)\)(.*)$/.exec(pattern) ?? [];
    for (const name of names.split('\\|')) {
      const form = new RegExp(`^${(before + name + after).replaceAll('*', '[\\w-]*')}\\.test\\.ts$`);
      t.true(
        tests.some((path) => form.test(path)),
        `${pattern}: ${name}`,
      );
    }
  }
});

test('what the commands of the demo and of the tutorial write into a checkout is ignored by git', (t) => {
  const [tutorial = ''] = read('docs/start/tutorial.md').split('cd shop-api');
  const text = read('demo/demo.txt') + read('docs/start/demo.md') + tutorial;
  const written = new Set([...text.matchAll(/(?: >|--to |-file |mkdir )([a-z][\w.-]*)/g)].map(([, name]) => name));
  const ignored = read('.gitignore').replaceAll(/[/*]/g, '').split('\n');
  t.deepEqual([...written].sort(), words('copy.duckdb ready.json shop-api token'));
  for (const name of written) t.true(ignored.includes(name as string), name);
});

test('commands that the documentation shows are npm scripts, or commands of the program with options that their help has', (t) => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const program =
    /(?:^\s*|[`(]|&& |; )(?:\w+=\S+ )*(?:npx --no-install )?(?:(?:workspace-data-)?gateway|node dist\/(?:src\/main\.js|bundle\/gateway\.cjs)) ([a-z]+)\b([^`\n|#>]*)/gm;
  const called = new Set<string>();
  for (const page of pages) {
    const text = read(page);
    const run = [...text.matchAll(/npm run (?:-s )?([\w:-]+)/g)].map(([, name]) => name as string);
    const missing = run.filter((name) => !Object.hasOwn(scripts, name));
    t.deepEqual(missing, [], page);
    const code = (text.match(/```[\s\S]*?```|`[^`\n]+`/g) ?? []).join('\n');
    for (const [call, name, rest] of code.matchAll(program)) {
      const file = `config/help/${name}.txt`;
      if (!existsSync(join(projectRoot, file))) t.fail(`${page}: ${call}`);
      else
        for (const [option] of (rest as string).matchAll(/--[a-z-]+/g))
          t.true(read(file).includes(`  ${option}`), `${page}: ${call}`);
      called.add(name as string);
    }
  }
  t.deepEqual([...called].sort(), words('adopt check docs export migrate register serve tokens views'));
  t.true(read('README.md').includes('npm ci && npm test') && Object.hasOwn(scripts, 'test'));
  t.regex(read('.ci/run'), /^npm ci\b/m);
  t.regex(read('.ci/run'), /\bnpm test\b/);
});

test('each block of shell on the pages is shell', (t) => {
  for (const page of pages)
    for (const [, block] of read(page).matchAll(/^ *```sh\n(.*?)^ *```$/gms))
      t.is(spawnSync('sh', ['-n'], { input: block as string, encoding: 'utf8' }).stderr, '', page);
});

test('links between the pages lead somewhere', (t) => {
  const anchors = (path: string): string[] => [
    ...[...read(path).matchAll(/<a id="([\w-]+)">/g)].map(([, id]) => id as string),
    ...[...read(path).matchAll(/^#+ (.+?)(?: <a .*)?$/gm)].map(([, title]) =>
      (title as string)
        .toLowerCase()
        .replace(/[^\p{L}\p{N}\s_-]/gu, '')
        .replace(/\s/g, '-'),
    ),
  ];
  for (const page of pages) {
    const text = read(page).replace(/```[\s\S]*?```/g, '');
    for (const [, target] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target as string)) continue;
      const [file = '', anchor] = (target as string).split('#');
      const path = file === '' ? page : join(dirname(page), file);
      t.true(existsSync(join(projectRoot, path)), `${page}: ${target}`);
      if (anchor !== undefined && statSync(join(projectRoot, path)).isFile())
        t.true(anchors(path).includes(anchor), `${page}: ${target}`);
    }
  }
});

test('each verdict about a server has a row that names its cause, its end and its place', (t) => {
  const verdicts = Object.keys(events).filter((name) =>
    /^(replica|primary_(?!read)|resource|server|look|named)/.test(name),
  );
  const table = section(read('docs/contribute/health.md'), '## Verdicts about servers');
  t.true(verdicts.length > 10);
  t.deepEqual(
    verdicts.filter((name) => !table.includes(`\`${name}\``)),
    [],
  );
});
