import { join } from 'node:path';
import { projectRoot } from '../../src/base/paths.js';
import { output, toolsFolder, workFolder } from './client-tools.js';

/** A generator of TypeScript clients runs over openapi.json; `calls` uses the functions of its client. */
export interface Generator {
  readonly commands: readonly (readonly [program: string, ...args: string[]])[];
  readonly files?: Readonly<Record<string, string>>;
  readonly client: string;
}

const listNames = ['klanten', 'installaties', 'werkbonnen', 'logboeken'] as const;
/** An object holds four functions or schemas, by the name of the list. */
const byList = (of: (list: string) => string): string =>
  `{ ${listNames.map((list) => `${list}: ${of(`${list[0]?.toUpperCase()}${list.slice(1)}`)}`).join(', ')} }`;

/** test/tools installs these: their packages are small enough for each run of the tests. */
export const generators: Readonly<Record<string, Generator>> = {
  'openapi-typescript': {
    commands: [['openapi-typescript', 'openapi.json', '-o', 'client.ts']],
    client: `import createClient from 'openapi-fetch';
      import type { paths } from './client';
      const api = createClient<paths>({ baseUrl: BASE, headers: { Authorization } });
      const page = async (list: List, query: Query) => (await api.GET(\`/\${list}\`, { params: { query } })).data as Page;
      const read = async (id: string) => (await api.GET('/installaties/{id}', { params: { path: { id } } })).data;
      const create = async (key: string, body: Create) =>
        (await api.POST('/installaties', { params: { header: { 'Idempotency-Key': key } }, body })).data;
      const update = async (id: string, header: Change, body: Patch) =>
        (await api.PATCH('/installaties/{id}', { params: { path: { id }, header }, body })).data;`,
  },
  'swagger-typescript-api': {
    commands: [['swagger-typescript-api', 'generate', '-p', 'openapi.json', '-o', 'client', '-n', 'index.ts']],
    client: `import { Api } from './client';
      const api = new Api({ baseUrl: BASE, baseApiParams: { headers: { Authorization } } });
      const lists = { klanten: api.klanten.listKlanten, installaties: api.installaties.listInstallaties,
        werkbonnen: api.werkbonnen.listWerkbonnen, logboeken: api.logboeken.listLogboeken };
      const page = async (list: List, query: Query) => (await lists[list](query)).data as Page;
      const read = async (id: string) => (await api.installaties.getInstallatie(id)).data;
      const create = async (key: string, body: Create) =>
        (await api.installaties.createInstallatie(body, {}, { headers: { Authorization, 'Idempotency-Key': key } })).data;
      const update = async (id: string, header: Change, body: Patch) =>
        (await api.installaties.updateInstallatie(id, body, {}, { headers: { Authorization, ...header } })).data;`,
  },
  '@hey-api/openapi-ts, with Zod': {
    commands: [['openapi-ts']],
    files: {
      'openapi-ts.config.mjs': `export default { input: 'openapi.json', output: 'client',
        plugins: ['@hey-api/client-fetch', 'zod', { name: '@hey-api/sdk', validator: { response: 'zod' } }] };`,
    },
    client: `import { client } from './client/client.gen';
      import * as api from './client/sdk.gen';
      client.setConfig({ baseUrl: BASE, auth: () => TOKEN, throwOnError: true });
      const lists = ${byList((list) => `api.list${list}`)};
      const page = async (list: List, query: Query) => (await lists[list]({ query })).data as Page;
      const read = async (id: string) => (await api.getInstallatie({ path: { id } })).data;
      const create = async (key: string, body: Create) =>
        (await api.createInstallatie({ headers: { 'Idempotency-Key': key }, body })).data;
      const update = async (id: string, headers: Change, body: Patch) =>
        (await api.updateInstallatie({ path: { id }, headers, body })).data;`,
  },
  'orval, with Zod': {
    commands: [
      ['orval', '--input', './openapi.json', '--output', './client.ts', '--client', 'fetch'],
      ['orval', '--input', './openapi.json', '--output', './zod.ts', '--client', 'zod'],
    ],
    client: `import * as api from './client';
      import * as zod from './zod';
      globalThis.fetch = (path, options) => originalFetch(BASE + path, { ...options, headers: { ...options?.headers, Authorization } });
      const lists = ${byList((list) => `async (query: Query) => zod.list${list}Response.parse((await api.list${list}(query)).data)`)};
      const page = async (list: List, query: Query) => (await lists[list](query)) as Page;
      const read = async (id: string) => zod.getInstallatieResponse.parse((await api.getInstallatie(id)).data);
      const create = async (key: string, body: Create) =>
        (await api.createInstallatie(zod.createInstallatieBody.parse(body), {}, { headers: { 'Idempotency-Key': key } })).data;
      const update = async (id: string, headers: Change, body: Patch) =>
        zod.updateInstallatieResponse.parse((await api.updateInstallatie(id, body, {}, { headers })).data);`,
  },
};

/** Generators that make schemas alone get a request and its parsed body. */
const asked = `const ask = async (method: string, path: string, headers = {}, body?: object) =>
  (await fetch(BASE + path, { method, headers: { Authorization, 'Content-Type': 'application/json', ...headers }, body: JSON.stringify(body) })).json();
const asked = (list: List, query: Query) => ask('GET', \`/\${list}?\${new URLSearchParams(query as {})}\`);`;

/** test/tools/generators installs these, for \`npm run soak -- generators\`. */
export const largeGenerators: Readonly<Record<string, Generator>> = {
  kubb: {
    commands: [['kubb', 'generate', '--config', 'kubb.config.mjs']],
    files: {
      'kubb.config.mjs': `import { defineConfig } from '@kubb/core';
        import { pluginOas } from '@kubb/plugin-oas';
        import { pluginTs } from '@kubb/plugin-ts';
        import { pluginZod } from '@kubb/plugin-zod';
        const plugins = [pluginOas({ validate: false, generators: [] }), pluginTs(), pluginZod({ version: '3' })];
        export default defineConfig({ input: { path: './openapi.json' }, output: { path: './client', extension: { '.ts': '' } }, plugins });`,
    },
    client: `import * as zod from './client/zod';
      ${asked}
      const lists = ${byList((list) => `zod.list${list}QueryResponseSchema`)};
      const page = async (list: List, query: Query) => lists[list].parse(await asked(list, query)) as Page;
      const read = async (id: string) => zod.getInstallatieQueryResponseSchema.parse(await ask('GET', \`/installaties/\${id}\`));
      const create = async (key: string, body: Create) => zod.createInstallatieMutationResponseSchema.parse(
        await ask('POST', '/installaties', { 'Idempotency-Key': key }, zod.createInstallatieMutationRequestSchema.parse(body)));
      const update = async (id: string, headers: Change, body: Patch) => zod.updateInstallatieMutationResponseSchema.parse(
        await ask('PATCH', \`/installaties/\${id}\`, headers, zod.updateInstallatieMutationRequestSchema.parse(body)));`,
  },
  'openapi-zod-client': {
    commands: [['openapi-zod-client', 'openapi.json', '-o', 'client.ts', '--with-alias']],
    client: `import { createApiClient } from './client';
      const api = createApiClient(BASE, { axiosConfig: { headers: { Authorization } } });
      const lists = ${byList((list) => `(queries: Query) => api.list${list}({ queries })`)};
      const page = async (list: List, query: Query) => (await lists[list](query)) as Page;
      const read = (id: string) => api.getInstallatie({ params: { id } });
      const create = (key: string, body: Create) => api.createInstallatie(body, { headers: { 'Idempotency-Key': key } });
      const update = (id: string, headers: Change, body: Patch) => api.updateInstallatie(body, { params: { id }, headers });`,
  },
};

interface Received extends Readonly<Record<'record' | 'changed', object>> {
  readonly lists: Readonly<Record<(typeof listNames)[number], readonly object[][]>>;
  readonly lastPages: readonly object[];
  readonly created: { readonly id: string };
}

const types = `type List = 'klanten' | 'installaties' | 'werkbonnen' | 'logboeken';
type Query = { perPage: number; cursor?: string };
type Page = { data: { id: string; customerId: string }[]; pagination: { nextCursor: string | null } };
type Create = { customerId: string; naam: string };
type Change = { 'Idempotency-Key': string; 'If-Match': string };
type Patch = { locatie: string; merk: null };
const { BASE, TOKEN } = process.env as Record<string, string>;
const Authorization = \`Bearer \${TOKEN}\`;
const originalFetch = fetch;`;

/** Reads every list to its last page, and makes, reads and changes an installation. */
const calls = `(async () => {
  const lists: Record<string, object[][]> = {};
  const lastPages: object[] = [];
  for (const list of ['klanten', 'installaties', 'werkbonnen', 'logboeken'] as const) {
    lists[list] = [];
    for (let cursor: string | null | undefined; cursor !== null; ) {
      const { data, pagination } = await page(list, { perPage: 500, ...(cursor && { cursor }) });
      lists[list].push(data);
      cursor = pagination.nextCursor;
      if (cursor === null) lastPages.push(pagination);
    }
  }
  const { customerId } = lists.installaties?.[0]?.[0] as { customerId: string };
  const created = (await create(crypto.randomUUID(), { customerId, naam: 'Koelcel' })) as { id: string };
  const etag = (await originalFetch(\`\${BASE}/installaties/\${created.id}\`, { headers: { Authorization } })).headers.get('etag');
  const record = await read(created.id);
  const changed = await update(created.id, { 'Idempotency-Key': crypto.randomUUID(), 'If-Match': etag as string }, { locatie: 'Zolder', merk: null });
  console.log(JSON.stringify({ lists, lastPages, created, record, changed }));
})();`;

/** Makes the client in a folder of its own, compiles it under `tsc --strict`, and runs it. */
async function received(
  { commands, files, client }: Generator,
  document: string,
  env: Readonly<Record<'BASE' | 'TOKEN', string>>,
  packages = toolsFolder,
): Promise<Received> {
  const program = `${client.match(/^ *import .*$/gm)?.join('\n')}\n${types}\n${client.replaceAll(/^ *import .*$/gm, '')}\n${calls}`;
  const folder = workFolder({ 'openapi.json': document, 'call.ts': program, ...files }, packages);
  for (const [command, ...args] of commands)
    await output(join(packages, 'node_modules/.bin', command), args, { cwd: folder });
  const modules = ['--module', 'commonjs', '--moduleResolution', 'bundler']; // some clients name no files
  const options = ['--strict', '--target', 'es2022', ...modules, '--skipLibCheck', '--types', 'node'];
  const roots = ['--typeRoots', join(projectRoot, 'node_modules/@types')];
  await output(join(projectRoot, 'node_modules/.bin/tsc'), [...options, ...roots, 'call.ts'], { cwd: folder });
  return JSON.parse(await output(process.execPath, ['call.js'], { cwd: folder, env })) as Received;
}

/** The names of all that a client received other than the API sends it: members in another order or missing, values of another type. */
export async function differences(
  generator: Generator,
  document: string,
  env: Readonly<Record<'BASE' | 'TOKEN', string>>,
  packages?: string,
): Promise<string[]> {
  const headers = { Authorization: `Bearer ${env.TOKEN}` };
  const raw = async (path: string): Promise<{ data: object[]; pagination: object }> =>
    JSON.parse(await (await fetch(env.BASE + path, { headers })).text());
  const lists = await Promise.all(listNames.map((list) => raw(`/${list}?perPage=10000`)));
  const { lists: read, lastPages, record, created, changed } = await received(generator, document, env, packages);
  const now = await raw(`/installaties/${created.id}`);
  const pairs: readonly (readonly [what: string, received: unknown, sent: unknown])[] = [
    ...listNames.map((list, i) => [list, read[list].flat(), lists[i]?.data] as const),
    ['last pages', lastPages.map(Object.keys), lists.map(({ pagination }) => Object.keys(pagination))],
    ['the record that was made', record, created],
    ['the record that was changed', changed, now],
    ['the shielded log', JSON.stringify(read.logboeken).includes('"afgeschermd":true'), true],
    ['several pages of a list', read.werkbonnen.length > 1, true],
  ];
  return pairs.filter(([, received, sent]) => JSON.stringify(received) !== JSON.stringify(sent)).map(([what]) => what);
}
