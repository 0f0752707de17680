import type { ApiReply } from '../support/client.js';
import { definitionsWith } from '../support/definitions.js';
import { makeWalls } from '../support/walls.js';
import { gatewayTest } from '../support/workspace.js';
import { newKey } from '../support/writes.js';

const test = gatewayTest();

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

test('a fifth resource is one definition and its views: ids of the database, xmin as version, no audit entries', async (t) => {
  const { database } = t.context;
  const folder = definitionsWith(t, { tools, codes });
  await database.primary.query(tables);
  await makeWalls(database.primary, folder);
  await database.primary.query('insert into app.codes select $1, unnest($2::text[])', [
    database.workspaces[0]?.id,
    codeIds,
  ]);
  await database.caughtUp();
  const { client } = await database.gateway({ resourcesDir: folder });
  const token = await database.token({ scopes: ['read:tools', 'write:tools', 'read:klanten', 'read:codes'] });
  const foreign = await database.token({ workspace: 1, scopes: ['read:tools', 'write:tools'] });
  const write = (method: string, path: string, body: object, headers: object = {}): Promise<ApiReply> =>
    client.request(method, path, { token, body, headers: { 'idempotency-key': newKey(), ...headers } });
  const found = async (query: string): Promise<string[]> =>
    (await client.get(`/tools?${query}`, { token })).json<{ data: Tool[] }>().data.map(({ id }) => id);
  const logged = async (): Promise<string> =>
    (await database.primary.query('select count(*) from app.logboeken')).rows[0].count;
  const before = await logged();

  const saw = { label: 'saw', rank: 7, weight: 2.5, constructor: true, bought: '2026-01-31' };
  const create = (): Promise<ApiReply> => write('POST', '/tools', saw, { 'idempotency-key': 'saw' });
  const reply = await create();
  t.is(reply.status, 201, reply.text);
  t.is((await create()).text, reply.text);
  const tool = reply.json<Tool>();
  t.like(tool, {
    id: '1',
    label: 'saw',
    rank: 7,
    weight: 2.5,
    constructor: true,
    bought: '2026-01-31',
    partOf: null,
    colour: 'red',
  });
  t.regex(reply.text, /"length":12.50,/);
  t.true((reply.headers.location as string).endsWith('/api/v1/tools/1'));
  t.is(reply.headers.etag, `"v${tool.version}"`);
  t.is((await client.get('/tools/1', { token })).text, reply.text);

  const etag = `"v${tool.version}"`;
  const same = await write('PATCH', '/tools/1', { rank: 7, weight: 2.5, constructor: true }, { 'if-match': etag });
  t.is(same.json<Tool>().version, tool.version, 'nothing changed');
  const patched = await write('PATCH', '/tools/1', { constructor: false, weight: null }, { 'if-match': etag });
  t.is(patched.status, 200, patched.text);
  t.like(patched.json<Tool>(), { constructor: false, weight: null, rank: 7 });
  t.not(patched.json<Tool>().version, tool.version);
  t.is((await write('PATCH', '/tools/1', { constructor: true }, { 'if-match': etag })).status, 412);

  t.like((await write('POST', '/tools', { label: 'blade', partOf: '1' })).json<Tool>(), {
    id: '2',
    constructor: null,
  });
  t.is((await write('POST', '/tools', { label: 'blade', partOf: '99' })).status, 400);
  t.is((await write('POST', '/tools', { label: 'blade', rank: 1001 })).status, 400);
  t.is(await logged(), before);

  for (const id of ['3', 'x', '01', '9223372036854775807', '99999999999999999999'])
    t.is((await client.get(`/tools/${id}`, { token })).status, 404, id);
  t.is((await client.get('/tools/1', { token: foreign })).status, 404);
  t.is((await client.get('/klanten?perPage=1', { token })).status, 200);

  t.deepEqual(await found('rank=7'), ['1']);
  t.deepEqual(await found('rank=99999'), [], 'beyond the column');
  t.deepEqual(await found('number=2'), ['2']);
  t.deepEqual(await found('number=9223372036854775807'), []);
  t.deepEqual(await found('constructor=false'), ['1']);
  t.deepEqual(await found('constructor=true'), []);
  t.deepEqual(await found('bought=2026-01-31&rank=7'), ['1']);
  const day = tool.seenAt.slice(0, 10);
  t.deepEqual(await found(`seenFrom=${day}&seenTo=${day}`), ['2', '1']);
  t.deepEqual(await found('seenTo=2020-01-01'), []);
  t.deepEqual(await found('seenAt=2020-01-01T00:00:00Z'), []);
  const wrong = await client.get('/tools?rank=1e3&constructor=yes&bought=2026-02-30&seenFrom=2026-1-1', { token });
  t.deepEqual(
    wrong
      .json<{ errors: { parameter: string; code: string }[] }>()
      .errors.map(({ parameter, code }) => [parameter, code]),
    [
      ['rank', 'invalid_integer'],
      ['constructor', 'invalid_boolean'],
      ['bought', 'invalid_date'],
      ['seenFrom', 'invalid_date'],
    ],
  );
  const reversed = await client.get('/tools?seenFrom=2026-01-02&seenTo=2026-01-01', {
    token,
  });
  t.regex(reversed.text, /range_reversed/);

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
  const { rows: sorted } = await database.primary.query<{ id: string }>('select id from app.codes order by id');
  t.deepEqual(
    await walked('codes'),
    sorted.map(({ id }) => id),
  );
  for (const id of codeIds)
    t.is((await client.get(`/codes/${encodeURIComponent(id)}`, { token })).json<{ id: string }>().id, id);
});
