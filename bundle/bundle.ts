import { execFileSync, fork } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build, type Metafile, type Plugin } from 'esbuild';
import { projectRoot } from '../src/base/paths.js';
import { nodeFlags } from './node-flags.js';

// `npm run bundle`: the program and its packages as one file, dist/bundle/program.js, with V8's code cache beside it. Names and lines stay
// as they are, but for names that two modules have, so that stack traces can be read. Packages that only some settings or requests need are
// files beside it, so that the program needs no node_modules.

/** The folder of this build: beside dist, so that a service that runs from there can start workers meanwhile. */
const built = join(import.meta.dirname, '..');
const folder = join(built, 'bundle');
const program = join(folder, 'program.js');
/** Folders of the packages whose code is in the files, below the project. */
const bundled = new Set<string>();
/** Files of packages that are loaded later, and their content; a name is that of a package, or of the group that it belongs to. */
const loadedLater: Readonly<Record<string, string>> = {
  'koa-body': `export { koaBody } from 'koa-body'`,
  ioredis: `export { Redis } from 'ioredis'`,
  '@opentelemetry': `
    export { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
    export { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
    export { resourceFromAttributes } from '@opentelemetry/resources'`,
};
/** Media types that Koa finds by their short names, json, bin, html and text; its table has 2,500, which every start would put together. */
const mediaTypes = ['application/json', 'application/octet-stream', 'text/html', 'text/plain'];
const fewMediaTypes: Plugin = {
  name: 'few-media-types',
  setup: ({ onLoad }) =>
    onLoad({ filter: /[\\/]mime-db[\\/]db\.json$/ }, ({ path }) => {
      const all = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>;
      const few = Object.fromEntries(mediaTypes.map((type) => [type, all[type]]));
      return { contents: JSON.stringify(few), loader: 'json' };
    }),
};

/** Parts of knex that only its other dialects, connections, schemas and migrations need: it composes statements of PostgreSQL alone. */
const unusedOfKnex =
  /\/(migrations|schema)\/|\/execution\/[\w-]+$|\/pool$|^\.\/(better-sqlite3|cockroachdb|mariadb|mssql|mysql2?|oracle(db)?|parse-connection|pgnative|redshift|sqlite3)$|^(pg-query-stream|tarn)$/;
const composingKnex: Plugin = {
  name: 'composing-knex',
  setup: ({ onResolve, onLoad }) => {
    onResolve({ filter: unusedOfKnex }, ({ path, importer }) =>
      /[\\/]node_modules[\\/]knex[\\/]/.test(importer) ? { path, namespace: 'unused' } : undefined,
    );
    onLoad({ filter: /^/, namespace: 'unused' }, () => ({ contents: 'module.exports = class {};' }));
  },
};

/** Leads the imports of packages that are loaded later to their files. */
const laterFiles: Plugin = {
  name: 'later-files',
  setup: ({ onResolve }) =>
    onResolve({ filter: /^(koa-body|ioredis|@opentelemetry\/(exporter|resources|sdk).*)$/ }, ({ path }) => ({
      path: `./${path.split('/')[0]}.cjs`,
      external: true,
    })),
};

for (const [name, contents] of Object.entries(loadedLater)) {
  const { metafile } = await build({
    stdin: { contents, resolveDir: projectRoot },
    outfile: join(folder, `${name}.cjs`),
    bundle: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    metafile: true,
    logLevel: 'warning',
  });
  notePackages(metafile);
}
await writeProgram();
writeLicenses();
writeBillOfMaterials();
await writeCache();
takePlace();

/** The new build takes the place of the old one between two moments. */
function takePlace(): void {
  const [dist, old] = ['dist', 'dist.old'].map((name) => join(projectRoot, name)) as [string, string];
  rmSync(old, { recursive: true, force: true });
  if (existsSync(dist)) renameSync(dist, old);
  renameSync(built, dist);
  rmSync(old, { recursive: true, force: true });
}

async function writeProgram(): Promise<void> {
  const { outputFiles, metafile } = await build({
    entryPoints: [join(built, 'src/main.js')],
    bundle: true,
    write: false,
    metafile: true,
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    charset: 'ascii',
    external: ['pg-native'], // a driver of pg that the gateway has no use for
    plugins: [fewMediaTypes, composingKnex, laterFiles],
    define: { 'import.meta.url': 'moduleUrl' },
    logLevel: 'warning',
  });
  notePackages(metafile);
  const text = outputFiles[0]?.text ?? '';
  const code = text.replace(/^#!.*\n/, '').replaceAll(/\bimport\(/g, 'importModule('); // as gateway.cts says
  const hash = createHash('sha256').update(code).digest('hex');
  const head = `// ${hash}\n(function (require, filename, importModule) { const moduleUrl = require('node:url').pathToFileURL(filename).href;\n`;
  writeFileSync(program, `${head}${code}})`);
}

function notePackages({ inputs }: Metafile): void {
  for (const input of Object.keys(inputs)) {
    const [found] = /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(input) ?? [];
    if (found !== undefined) bundled.add(found);
  }
}

/** Licenses ask that copies of a package have their text; each text stands once, under the packages that have it. */
function writeLicenses(): void {
  const packagesOf = new Map<string, string[]>();
  for (const path of [...bundled].sort().map((each) => join(projectRoot, each))) {
    const { name, version, license } = packageIn(path);
    const file = readdirSync(path).find((each) => /^licen[cs]e/i.test(each));
    const text =
      file === undefined ? 'The package has no text of its license.' : readFileSync(join(path, file), 'utf8');
    const packages = packagesOf.get(text.trim()) ?? [];
    packagesOf.set(text.trim(), [...packages, `${name} ${version}: ${license}`]);
  }
  const texts = [...packagesOf].map(([text, packages]) => `${packages.join('\n')}\n\n${text}\n`);
  writeFileSync(join(folder, 'licenses.txt'), texts.join(`\n${'-'.repeat(80)}\n\n`));
}

/** A list of npm's that names its packages as "name@version". */
interface BillOfMaterials {
  readonly metadata: { readonly component: { 'bom-ref': string; name: string } };
  components: { readonly 'bom-ref': string }[];
  dependencies: { readonly ref: string; dependsOn?: string[] }[];
}

/**
 * The packages whose code is in the program, as CycloneDX, beside their licenses: the packed manifest names none, and the image has no
 * node_modules. npm's own --omit=dev leaves out what a tool needs as well, such as pg.
 */
function writeBillOfMaterials(): void {
  const { name, version } = packageIn(projectRoot);
  const options = ['--package-lock-only', '--sbom-format=cyclonedx', '--sbom-type=application'];
  const bill: BillOfMaterials = JSON.parse(
    execFileSync('npm', ['sbom', ...options], { cwd: projectRoot, encoding: 'utf8' }),
  );
  const explorer = 'node_modules/openapi-explorer'; // a script of the docs page, beside the program
  const packages = [...bundled, explorer].map((path) => packageIn(join(projectRoot, path)));
  const inside = new Set([`${name}@${version}`, ...packages.map((each) => `${each.name}@${each.version}`)]);
  bill.metadata.component.name = name; // npm names it after the folder
  bill.components = bill.components.filter((each) => inside.has(each['bom-ref']));
  bill.dependencies = bill.dependencies.flatMap(({ ref, dependsOn = [] }) =>
    inside.has(ref) ? [{ ref, dependsOn: dependsOn.filter((each) => inside.has(each)) }] : [],
  );
  writeFileSync(join(folder, 'sbom.cdx.json'), `${JSON.stringify(bill)}\n`);
}

function packageIn(path: string): { name: string; version: string; license: string } {
  return JSON.parse(readFileSync(join(path, 'package.json'), 'utf8')) as ReturnType<typeof packageIn>;
}

/** Lets `serve` start without a database and answer a request, under the flags with which it will run: others have another cache. */
async function writeCache(): Promise<void> {
  const noServer = 'postgres://gateway_reader@127.0.0.1:1/none';
  const child = fork(join(folder, 'bake.cjs'), ['serve', '--port', '0', '--ops-port', '0'], {
    execArgv: nodeFlags,
    env: {
      REPLICA_URLS: noServer,
      PRIMARY_URLS: noServer,
      WALL_KEY: randomBytes(32).toString('base64'),
      DATA_KEYS: JSON.stringify({ k: randomBytes(32).toString('base64') }),
      RESOURCES_DIR: join(projectRoot, 'config/resources'),
    },
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const ended = once(child, 'exit');
  const failed = ended.then(([code]) => Promise.reject(new Error(`The program ended with ${code} before it served.`)));
  const [{ url }] = (await Promise.race([once(child, 'message'), failed])) as [{ url: string }];
  await (
    await fetch(`${url}/api/v1/installaties`, { headers: { authorization: `Bearer wdg_${'0'.repeat(49)}` } })
  ).text();
  child.send('write');
  const [code] = await ended;
  if (code !== 0) throw new Error(`The code cache could not be written (${code}).`);
}
