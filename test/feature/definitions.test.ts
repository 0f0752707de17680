import type { ExecutionContext } from 'ava';
import type { ApiReply } from '../support/client.js';
import { definitionsWith } from '../support/definitions.js';
import { faultsOf, idsOf } from '../support/lists.js';
import { makeWalls } from '../support/walls.js';
import { gatewayTest, type TestContext } from '../support/workspace.js';
import { newKey } from '../support/writes.js';

const test = gatewayTest().serial;

const tools = {
  name: 'tools',
  record: 'tool',
  description: 'Tools.',
  view: 'records.tools',
  version: 'version',
  order: ['label', 'seen_at', 'id'],
  filters: {
    rank: { column: 'rank', kind: 'equals', description: 'Only this rank.' },
    constructor: { column: 'lent', kind: 'equals', description: 'Only lent ones, or the others.' },
    bought: { column: 'bought', kind: 'equals', description: 'Bought on this day.' },
    seenAt: { column: 'seen_at', kind: 'equals', description: 'Seen at this instant.' },
    seenFrom: { column: 'seen_at', kind: 'from', description: 'First day.' },
    seenTo: { column: 'seen_at', kind: 'to', description: 'Last day.' },
    number: { column: 'id', kind: 'equals', description: 'Only the tool of this number.' },
  },
  write: { ids: 'database', audit: false },
  fields: {
    id: { column: 'id', type: 'bigint', description: 'Number.' },
    label: {
      column: 'label',
      type: 'text',
      description: 'Label.',
      write: { required: true, schema: { maxLength: 50 } },
    },
    rank: bounded('rank', 'integer'),
    weight: bounded('weight', 'number'),
    constructor: { column: 'lent', type: 'boolean', nullable: true, description: 'Lent.', write: {} },
    bought: { column: 'bought', type: 'date', nullable: true, description: 'Bought.', write: {} },
    partOf: {
      column: 'part_of',
      type: 'bigint',
      nullable: true,
      description: 'Whole.',
      references: 'tools',
      write: {},
    },
    colour: { column: 'details', pointer: '/colour', type: 'text', nullable: true, description: 'Colour.' },
    length: { column: 'details', pointer: '/size/0', type: 'number', nullable: true, description: 'Length.' },
    seenAt: { column: 'seen_at', type: 'timestamp', description: 'Seen.' },
    version: { column: 'version', type: 'integer', description: 'Version.' },
  },
};

const codes = {
  name: 'codes',
  record: 'code',
  description: 'Codes.',
  view: 'records.codes',
  order: ['id'],
  fields: { id: { column: 'id', type: 'text', description: 'Code.' } },
};
const codeIds = ['1', 'a/b', 'c\nd', 'e f', '\\', 'é'];

function bounded(column: string, type: string): object {
  const schema = { minimum: 0, maximum: 1000 };
  return { column, type, nullable: true, description: 'A number.', write: { schema } };
}

const tables = `
  create table app.codes (workspace_id uuid not null, id text primary key);
  create view records.codes as select workspace_id, id from app.codes;
  create table app.tools (id integer generated always as identity primary key, workspace_id uuid not null, label text not null,
    rank smallint, weight numeric(8, 3), lent boolean, bought date, part_of integer, details jsonb default '{"colour": "red", "size": [12.50]}', seen_at timestamptz not null default now());
  create view records.tools as select *, xmin::text::bigint as version from app.tools;`;

interface Page {
  readonly data: { readonly id: string }[];
  readonly pagination: { readonly next: string | null };
}

interface Tool {
  readonly id: string;
  readonly version: number;
  readonly seenAt: string;
  readonly [member: string]: unknown;
}

const saw = { label: 'saw', rank: 7, weight: 2.5, constructor: true, bought: '2026-01-31' };

async function makeToolsApi(t: ExecutionContext<TestContext>) {
  const { database } = t.context;
  const folder = definitionsWith(t, { tools, codes });
  await database.primary.query(tables);
  await makeWalls(database.primary, folder);
  const workspace = database.workspaces[0]?.id;
  await database.primary.query('insert into app.codes select $1, unnest($2::text[])', [workspace, codeIds]);
  await database.caughtUp();
  const { client } = await database.gateway({ resourcesDir: folder });
  const token = await database.token({ scopes: ['read:tools', 'write:tools', 'read:klanten', 'read:codes'] });
  const write = (method: string, path: string, body: object, headers: object = {}): Promise<ApiReply> =>
    client.request(method, path, { token, body, headers: { 'idempotency-key': newKey(), ...headers } });
  const logged = async (): Promise<string> =>
    (await database.primary.query('select count(*) from app.logboeken')).rows[0].count;
  const loggedBefore = await logged();
  const create = (): Promise<ApiReply> => write('POST', '/tools', saw, { 'idempotency-key': 'saw' });
  const [created, replayed] = [await create(), await create()];
  const found = async (query: string): Promise<string[]> =>
    (await client.get(`/tools?${query}`, { token })).json<{ data: Tool[] }>().data.map(({ id }) => id);
  return { client, token, write, found, logged, loggedBefore, created, replayed };
}

let api: ReturnType<typeof makeToolsApi> | undefined;
/** One API for all tests, which run one after the other: each finds the tools as the tests before it left them. */
const toolsApi = (t: ExecutionContext<TestContext>): ReturnType<typeof makeToolsApi> => (api ??= makeToolsApi(t));

test('a fifth resource is one definition and its views: ids of the database, xmin as version', async (t) => {
  const { client, token, created, replayed } = await toolsApi(t);
  t.is(created.status, 201, created.text);
  t.is(replayed.text, created.text);
  const tool = created.json<Tool>();
  t.like(tool, { id: '1', ...saw, partOf: null, colour: 'red' });
  t.regex(created.text, /"length":12.50,/);
  t.true((created.headers.location as string).endsWith('/api/v1/tools/1'));
  t.is(created.headers.etag, `"v${tool.version}"`);
  t.is((await client.get('/tools/1', { token })).text, created.text);
  t.is((await client.get('/klanten?perPage=1', { token })).status, 200);
});

test('a PATCH moves xmin as the version, unless it changes nothing', async (t) => {
  const { write, created } = await toolsApi(t);
  const { version } = created.json<Tool>();
  const headers = { 'if-match': `"v${version}"` };
  const same = await write('PATCH', '/tools/1', { rank: 7, weight: 2.5, constructor: true }, headers);
  t.is(same.json<Tool>().version, version, 'nothing changed');
  const patched = await write('PATCH', '/tools/1', { constructor: false, weight: null }, headers);
  t.is(patched.status, 200, patched.text);
  t.like(patched.json<Tool>(), { constructor: false, weight: null, rank: 7 });
  t.not(patched.json<Tool>().version, version);
  t.is((await write('PATCH', '/tools/1', { constructor: true }, headers)).status, 412);
});

test('a record refers to one of its own resource, and no write of it is an audit entry', async (t) => {
  const { write, logged, loggedBefore } = await toolsApi(t);
  t.like((await write('POST', '/tools', { label: 'blade', partOf: '1' })).json<Tool>(), { id: '2', constructor: null });
  t.is((await write('POST', '/tools', { label: 'blade', partOf: '99' })).status, 400);
  t.is((await write('POST', '/tools', { label: 'blade', rank: 1001 })).status, 400);
  t.is(await logged(), loggedBefore);
});

test('ids that no record has, and those of another workspace, are 404', async (t) => {
  const { client, token } = await toolsApi(t);
  for (const id of ['3', 'x', '01', '9223372036854775807', '99999999999999999999'])
    t.is((await client.get(`/tools/${id}`, { token })).status, 404, id);
  const foreign = await t.context.database.token({ workspace: 1, scopes: ['read:tools', 'write:tools'] });
  t.is((await client.get('/tools/1', { token: foreign })).status, 404);
});

test('each kind of filter finds its records', async (t) => {
  const { found, created } = await toolsApi(t);
  const day = created.json<Tool>().seenAt.slice(0, 10);
  const cases: Readonly<Record<string, readonly string[]>> = {
    'rank=7': ['1'],
    'rank=99999': [], // beyond the column
    'number=2': ['2'],
    'number=9223372036854775807': [],
    'constructor=false': ['1'],
    'constructor=true': [],
    'bought=2026-01-31&rank=7': ['1'],
    [`seenFrom=${day}&seenTo=${day}`]: ['2', '1'],
    'seenTo=2020-01-01': [],
    'seenAt=2020-01-01T00:00:00Z': [],
  };
  for (const [query, ids] of Object.entries(cases)) t.deepEqual(await found(query), ids, query);
});

test('values that a filter cannot have are refused, each with its code', async (t) => {
  const { client, token } = await toolsApi(t);
  const wrong = await client.get('/tools?rank=1e3&constructor=yes&bought=2026-02-30&seenFrom=2026-1-1', { token });
  t.deepEqual(faultsOf(wrong), [
    'rank invalid_integer',
    'constructor invalid_boolean',
    'bought invalid_date',
    'seenFrom invalid_date',
  ]);
  const reversed = await client.get('/tools?seenFrom=2026-01-02&seenTo=2026-01-01', { token });
  t.regex(reversed.text, /range_reversed/);
});

test('lists in the order of texts are walked whole, whatever characters an id has', async (t) => {
  const { client, token } = await toolsApi(t);
  const walked = async (list: string): Promise<string[]> => {
    const ids: string[] = [];
    for (let path: string | null | undefined = `/${list}?perPage=1`; path; ) {
      const page: Page = (await client.get(path, { token })).json();
      ids.push(...page.data.map(({ id }) => id));
      path = page.pagination.next?.split('/api/v1')[1];
    }
    return ids;
  };
  t.deepEqual(await walked('tools'), ['2', '1'], 'by label');
  const { rows } = await t.context.database.primary.query<{ id: string }>('select id from app.codes order by id');
  t.deepEqual(await walked('codes'), idsOf(rows));
  for (const id of codeIds)
    t.is((await client.get(`/codes/${encodeURIComponent(id)}`, { token })).json<{ id: string }>().id, id);
});
