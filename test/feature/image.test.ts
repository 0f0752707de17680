import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  cpSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { ExecutionContext } from 'ava';
import { freePort } from '../../demo/cluster/ports.js';
import { projectRoot } from '../../src/base/paths.js';
import type { StatusReport } from '../../src/serve/ops/status.js';
import { getEnvironmentName, type Settings } from '../../src/settings.js';
import { connections, programLine } from '../support/command-line.js';
import { customerOf } from '../support/primary-side.js';
import { serveProcess } from '../support/serve-process.js';
import { sourcesIn } from '../support/sources.js';
import { eventually, gatewayTest } from '../support/workspace.js';

// The files of the image, built as the Dockerfile says, and the package that npm packs, installed into an empty folder.

const test = gatewayTest();
const [build = '', image = '', installed = ''] = ['build-', 'image-', 'installed-'].map((name) =>
  mkdtempSync(join(tmpdir(), name)),
);
const text = readFileSync(join(projectRoot, 'Dockerfile'), 'utf8');

test.before(() => {
  const [buildStage = '', lastStage = ''] = text.split(/^FROM .*$/m).slice(1);
  copyAll(buildStage, '', projectRoot, build);
  symlinkSync(join(projectRoot, 'node_modules'), join(build, 'node_modules'));
  execFileSync('npm', (/^RUN npm (run .*)$/m.exec(buildStage)?.[1] ?? '').split(' '), { cwd: build });
  copyAll(lastStage, '', projectRoot, image);
  copyAll(lastStage, '--from=build /build/', build, image);
});
test.after.always(() => [build, image, installed].map((folder) => rmSync(folder, { recursive: true })));

/** Does the COPY lines of a stage: those with the option, else those without. */
function copyAll(stage: string, option: string, from: string, to: string): void {
  for (const [, sources = '', target = ''] of stage.matchAll(new RegExp(`^COPY ${option}((?!--).*) (\\S+)$`, 'gm')))
    for (const source of sources.split(' '))
      cpSync(join(from, source), join(to, target === './' ? source : target), { recursive: true });
}

const run = (args: string[], settings: Partial<Settings> = {}, folder = image, program = 'dist/bundle/gateway.cjs') =>
  programLine(args, settings, folder, program);

test.serial(
  'the package is small, needs no other, serves, migrates, and has every file that a command reads',
  async (t) => {
    cpSync(join(image, 'dist'), join(build, 'dist'), { recursive: true });
    for (const folder of ['docs', 'deploy', 'sql', 'README.md', 'CHANGELOG.md', 'SECURITY.md', 'LICENSE'])
      cpSync(join(projectRoot, folder), join(build, folder), { recursive: true });
    const npm = (...args: string[]) => execFileSync('npm', args, { cwd: installed, encoding: 'utf8' });
    const manifest = readFileSync(join(build, 'package.json'), 'utf8');
    const changeManifest = (mode: string, cwd = build) =>
      spawnSync(process.execPath, [join(build, 'dist/bundle/packed-manifest.js'), mode], { cwd, encoding: 'utf8' });
    for (const folder of [build, join(projectRoot, 'pull')])
      t.regex(changeManifest('--publishable', folder).stderr, /lacks repository, homepage, bugs/);
    changeManifest('--pack'); // as prepack does
    const flags = ['--silent', '--ignore-scripts', '--offline', '--no-audit'];
    const [archive] = JSON.parse(npm('pack', build, '--json', ...flags)) as [
      { filename: string; size: number; files: { path: string }[] },
    ];
    changeManifest('--restore'); // as postpack does
    t.is(readFileSync(join(build, 'package.json'), 'utf8'), manifest);
    t.true(archive.size < 3_000_000, `${archive.size} bytes`);
    const others = archive.files.filter(({ path }) => /^(test|bench|src|demo|pull|sql\/apps)\//.test(path));
    t.deepEqual(others, []);
    writeFileSync(join(installed, 'package.json'), '{}');
    npm('install', archive.filename, ...flags);
    t.deepEqual(readdirSync(join(installed, 'node_modules')).sort(), [
      '.bin',
      '.package-lock.json',
      'workspace-data-gateway',
    ]);
    const program = 'node_modules/.bin/workspace-data-gateway';
    const settings = { ...connections(t.context.database), host: '127.0.0.1', port: 0, opsPort: 0 };
    const { url, stop } = await serveProcess(settings, { main: join(installed, program) });
    t.is((await fetch(`${url}/api/v1/openapi.json`)).status, 200);
    t.is(await stop(), 0);
    const { code, stderr } = await run(['migrate'], settings, installed, program);
    t.is(code, 0, stderr);
    const folder = join(installed, 'node_modules/workspace-data-gateway');
    assertComplete(t, folder);
    const licenses = readFileSync(join(folder, 'dist/bundle/licenses.txt'), 'utf8');
    for (const name of ['koa', 'pg', 'koa-body', 'ioredis', '@opentelemetry/resources'])
      t.true(licenses.includes(`\n${name} `), name); // of the program's packages, and of those that are loaded later
    const bill = JSON.parse(readFileSync(join(folder, 'dist/bundle/sbom.cdx.json'), 'utf8'));
    const components = (bill.components as { name: string }[]).map(({ name }) => name);
    t.is(bill.metadata.component.name, 'workspace-data-gateway');
    for (const name of ['koa', 'pg', 'ioredis', 'openapi-explorer']) t.true(components.includes(name), name);
    t.false(components.includes('ava'));
  },
);

test('a program without its files names the first that is missing', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'alone-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  cpSync(join(image, 'dist/bundle'), folder, { recursive: true });
  const { stderr, code } = await programLine(['serve'], {}, folder, 'gateway.cjs');
  t.is(code, 1);
  t.regex(stderr, /no such file.*config\/[\w./]+\.json/);
});

test('the image has neither packages, nor the demo, nor the reference app', (t) => {
  for (const path of ['node_modules', 'dist/demo', 'demo', 'pull', 'sql/apps', 'test', 'bench'])
    t.false(existsSync(join(image, path)), path);
});

test('help and settings work in the image', async (t) => {
  const help = await run(['--help']);
  t.is(help.code, 0, help.stdout);
  for (const command of ['serve', 'check', 'migrate', 'views', 'docs', 'tokens'])
    t.regex(help.stdout, new RegExp(`^  ${command} `, 'm'));
  const config = await run(['serve', '--print-config'], { port: 1234 });
  t.is(JSON.parse(config.stdout).port, 1234);
  t.is((await run(['docs', '--out', join(image, 'page.html')])).code, 0);
});

test('check and migrate work in the image', async (t) => {
  const settings = connections(t.context.database);
  const checked = await run(['check'], settings);
  t.regex(checked.stdout, /No item failed; warnings: 2\.\n$/);
  t.is(checked.code, 0);
  const listed = await run(['migrate', '--list'], settings);
  t.regex(listed.stdout, /^applied core\/001_roles\.sql$/m);
  t.false(listed.stdout.includes('pending'));
});

test('adopt drafts in the image', async (t) => {
  const out = join(image, 'draft');
  const { stderr, code } = await run(['adopt', '--schema', 'app', '--out', out], connections(t.context.database));
  t.is(code, 0, stderr);
  t.true(existsSync(join(out, 'config/resources/klanten.json')));
});

test('every file of the project that a command reads is in the image', (t) => assertComplete(t, image));

/** A folder must have every file of the project that a command reads. */
function assertComplete(t: ExecutionContext, folder: string): void {
  const read = sourcesIn('src', '.ts').flatMap(({ code }) => [...code.matchAll(/readProject\(['`]([^'`$]+)/g)]);
  t.true(read.length > 5);
  // A name behind a $ is not known: its folder must be there.
  for (const [, known = ''] of read)
    t.true(existsSync(join(folder, known.endsWith('/') ? known : dirname(known))), known);
}

const commands = [...text.matchAll(/^ *CMD (\["node", .*\])$/gm)].map(([, list = '']) =>
  (JSON.parse(list) as string[]).slice(1),
);

test("the image's start command loads what only some settings and requests need, and a client creates a record", async (t) => {
  const { database, token } = t.context;
  const { replicaUrls, primaryUrls, dataKeys, wallKey } = connections(database);
  const collector = createServer((_, response) => response.end('{}')).listen(0, '127.0.0.1');
  t.teardown(() => collector.close());
  const traced = once(collector, 'request');
  await once(collector, 'listening');
  const { port } = collector.address() as AddressInfo;
  const codecModule = join(image, 'codec.mjs');
  writeFileSync(codecModule, 'export default () => null;');
  const listeners = { host: '127.0.0.1', port: 0, opsPort: 0 };
  const resourcesDir = join(image, 'config/resources');
  const settings = { replicaUrls, primaryUrls, dataKeys, wallKey, codecModule, resourcesDir, ...listeners };
  const env = Object.fromEntries(
    Object.entries({ ...settings, redisUrl: 'redis://127.0.0.1:1' }).map(([name, value]) => [
      getEnvironmentName(name),
      String(value),
    ]),
  );
  const child = spawn(process.execPath, commands[1] as string[], {
    cwd: image,
    env: { ...env, OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}` },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  const [{ url }] = (await Promise.race([once(child, 'message'), once(child, 'exit')])) as [{ url?: string }];
  t.truthy(url, 'it starts');
  const created = await fetch(`${url}/api/v1/installaties`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'idempotency-key': 'image' },
    body: JSON.stringify({ naam: 'Koelcel', customerId: await customerOf(database) }),
  });
  t.is(created.status, 201, await created.text());
  child.kill('SIGTERM');
  const [{ url: path }] = (await traced) as [{ url: string }];
  t.is(path, '/v1/traces');
});

test("the image's start command serves, its health check asks /livez, and its stop signal ends it with 0", async (t) => {
  const { replicaUrls, primaryUrls, dataKeys, wallKey } = connections(t.context.database);
  const resourcesDir = join(image, 'config/resources');
  const settings = {
    replicaUrls,
    primaryUrls,
    dataKeys,
    wallKey,
    resourcesDir,
    host: '127.0.0.1',
    port: 0,
    opsPort: 0,
  };
  const env = Object.fromEntries(
    Object.entries(settings).map(([name, value]) => [getEnvironmentName(name), String(value)]),
  );
  const [health = [], start = []] = commands;
  const child = spawn(process.execPath, start, { cwd: image, env, stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
  const exited = once(child, 'exit');
  const [{ opsUrl }] = (await Promise.race([once(child, 'message'), exited])) as [{ opsUrl: string }];
  const healthCheck = () => spawnSync(process.execPath, health, { env: { OPS_PORT: new URL(opsUrl).port } }).status;
  t.is(healthCheck(), 0);
  child.kill(/^STOPSIGNAL (\w+)$/m.exec(text)?.[1] as NodeJS.Signals);
  t.deepEqual(await exited, [0, null]);
  t.is(healthCheck(), 1);
});

test.serial('an init container that asks for pending migrations ends with 1 until they are applied', async (t) => {
  const { name, primary, settings } = t.context.database;
  const role = `lister_${name}`;
  await primary.query(`create role ${role} login password 'lister'; grant usage on schema gateway to ${role};
    grant select on gateway.applied_files to ${role};
    grant execute on function gateway.digest_of(text[]), gateway.sources_of(text[]), gateway.states_of(text[]) to ${role}`);
  const adminUrl = Object.assign(new URL(settings.adminUrl), { username: role, password: 'lister' }).href;
  try {
    t.deepEqual(await run(['migrate', '--pending'], { adminUrl }), { stdout: 'nothing to do\n', stderr: '', code: 0 });
    await primary.query(`update gateway.applied_files set root = 'none' where name = '004_idempotency.sql'`);
    const { stdout, code } = await run(['migrate', '--pending'], { adminUrl });
    t.deepEqual({ stdout, code }, { stdout: 'pending core/004_idempotency.sql\n', code: 1 });
  } finally {
    await primary.query(`update gateway.applied_files set root = 'core' where root = 'none'`);
    await primary.query(`drop owned by ${role}; drop role ${role}`).catch(() => undefined); // databases of other tests may name it
  }
});

test.serial('a release serves, and migrates, in front of the schema of a newer one', async (t) => {
  const { database } = t.context;
  await database.primary.query(
    `insert into gateway.applied_files (root, name, hash) values ('core', '999_later.sql', 'x')`,
  );
  t.teardown(() => database.primary.query(`delete from gateway.applied_files where name = '999_later.sql'`));
  const { adminUrl, wallKey, resourcesDir } = database.settings;
  const pending = await run(['migrate', '--pending'], { adminUrl, wallKey, resourcesDir });
  t.deepEqual(pending, { stdout: 'nothing to do\n', stderr: '', code: 0 });
  const migrated = await run(['migrate'], { adminUrl, wallKey, resourcesDir });
  t.is(migrated.code, 0);
  t.regex(migrated.stderr, /core\/999_later\.sql of a newer version of the gateway: they stay as they are\./);
  const served = await serveProcess(database.settings, { main: join(image, 'dist/bundle/gateway.cjs') });
  t.is((await fetch(`${served.opsUrl}/readyz`)).status, 200);
  await served.stop();
});

test.serial(
  'workers are replaced while the folder of their release is bundled again, and when a link leads elsewhere',
  async (t) => {
    const link = join(installed, 'current');
    symlinkSync(build, link);
    cpSync(join(projectRoot, 'sql'), join(build, 'sql'), { recursive: true });
    const settings = { ...t.context.database.settings, webConcurrency: 2, port: await freePort() };
    const served = await serveProcess(settings, { main: join(link, 'dist/bundle/gateway.cjs') });
    t.teardown(() => served.stop('SIGKILL'));
    const { pid } = served.child;
    const children = () => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(/\s+/);
    const replaceOne = async (): Promise<void> => {
      const [old = ''] = children();
      process.kill(Number(old), 'SIGKILL');
      const isWhole = async () => {
        const { workers } = (await (await fetch(`${served.opsUrl}/status.json`)).json()) as StatusReport;
        return !children().includes(old) && workers?.reporting === 2;
      };
      await eventually(t, 'its successor', isWhole, 60_000);
    };
    const before = readFileSync(join(build, 'dist/bundle/program.cache'));
    const bundling = once(spawn('npm', ['run', '-s', 'bundle'], { cwd: build, stdio: 'inherit' }), 'exit');
    let isOver = false;
    void bundling.finally(() => (isOver = true));
    let away = 0;
    const watched = (async () => {
      for (; !isOver; await sleep(5)) if (!existsSync(join(build, 'dist/bundle/program.js'))) away++;
    })();
    await replaceOne();
    t.deepEqual(await bundling, [0, null]);
    await watched;
    t.true(away <= 1, `${away} times the program was away`);
    t.not(readFileSync(join(build, 'dist/bundle/program.cache')), before);
    rmSync(link);
    symlinkSync(join(installed, 'nowhere'), link);
    await replaceOne();
    t.is((await fetch(`${served.opsUrl}/readyz`)).status, 200);
  },
);

/** V8 refuses the code cache of the image's program; "undefined" means that it is given none. */
function isCacheRefused(flags: readonly string[]): string {
  const script = "console.log(require('./dist/bundle/gateway.cjs').compile().cachedDataRejected)";
  return spawnSync(process.execPath, [...flags, '-e', script], { cwd: image, encoding: 'utf8' }).stdout.trim();
}

test("the image's program has the media types that Koa needs, without the 2,500 others", (t) => {
  const program = readFileSync(join(image, 'dist/bundle/program.js'), 'latin1');
  t.regex(program, /"text\/html": ?\{/);
  t.false(program.includes('application/vnd.'));
});

test.serial("the image's program comes from its code cache, under its flags and while the cache is its own", (t) => {
  const flags = (commands[1] ?? []).filter((arg) => arg.startsWith('--'));
  t.is(isCacheRefused(flags), 'false');
  t.is(isCacheRefused([...flags, '--no-opt']), 'true');
  const program = join(image, 'dist/bundle/program.js');
  const text = readFileSync(program, 'latin1');
  try {
    writeFileSync(program, text.replace(/^\/\/ ..../, '// none'), 'latin1'); // as long as before, which is all that V8 compares
    t.is(isCacheRefused(flags), 'undefined');
  } finally {
    writeFileSync(program, text, 'latin1');
  }
  t.is(isCacheRefused(flags), 'false', 'the other tests run from the cache');
});
