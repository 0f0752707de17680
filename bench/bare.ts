import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import pg from 'pg';
import type { Statement } from '../src/postgres/statement.js';
import { loadResources } from '../src/resource/definition/load.js';
import { compileStatements, type ResourceStatements } from '../src/resource/statements/statements.js';
import { commonHeaders } from '../src/serve/http/render.js';

const resources = loadResources('');

// The least that can answer: node:http and two pipelined pg clients that run the gateway's own statements, values as the
// text PostgreSQL sends, no token, no limit, the gateway's headers as constants. Lists come as one value that PostgreSQL's
// json_agg makes.
// Settings: PORT, DATABASE_URL, WORKSPACE_MAC: the workspace.
const { PORT, DATABASE_URL, WORKSPACE_MAC = '' } = process.env;
/** Sends as many bytes as the gateway, so that the difference is work, not bytes: names and values in turns. */
const headers = Object.entries({
  ...commonHeaders,
  'X-Request-Id': randomUUID(),
  'RateLimit-Policy': '"default";q=60;w=60',
  RateLimit: '"default";r=59;t=60',
  'Data-As-Of': new Date().toISOString(),
  ETag: '"1"',
  'Server-Timing': 'auth;dur=0.05, db;dur=1.25',
  'Content-Type': 'application/json',
}).flat();
const types = { getTypeParser: () => (value: string) => value } as unknown as pg.CustomTypesConfig;
const prepared = new Map(resources.map((each) => [each.name, queriesOf(compileStatements(each))]));
const clients = await Promise.all([connect(), connect()]);
let turn = 0;

const server = createServer((request, response) => {
  const [, resource = '', id] = (request.url as string).split('?')[0]?.split('/') ?? [];
  const answer = id ? detail(resource, id) : list(resource);
  answer.then(
    (body) => {
      response.writeHead(200, [...headers, 'Content-Length', String(Buffer.byteLength(body))]);
      response.end(body);
    },
    (error: Error) => {
      response.statusCode = 500;
      response.end(error.message);
    },
  );
});
server.listen(Number(PORT), '127.0.0.1');

async function detail(resource: string, id: string): Promise<string> {
  const statement = prepared.get(resource)?.detail;
  const values = statement?.parameters.map(() => id);
  const { rows } = await next().query({ ...statement, values, types } as pg.QueryConfig);
  return JSON.stringify(rows[0]);
}

async function list(resource: string): Promise<string> {
  const query = { ...prepared.get(resource)?.list, values: ['100'], types, rowMode: 'array' };
  const { rows } = await next().query<[string]>(query as pg.QueryArrayConfig);
  return rows[0]?.[0] ?? '[]';
}

function queriesOf({ detail, list }: ResourceStatements): { detail: Statement | null; list: Partial<Statement> } {
  const rows = list([]).rows.all;
  return { detail, list: { name: rows?.name ?? '', text: `select json_agg(page)::text from (${rows?.text}) page` } };
}

/** Sets a workspace for the whole session, because the views show nothing without one. */
async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: DATABASE_URL, pipeline: true } as pg.ClientConfig);
  await client.connect();
  await client.query("select set_config('gateway.workspace_id', $1, false)", [WORKSPACE_MAC]);
  return client;
}

function next(): pg.Client {
  turn = (turn + 1) % clients.length;
  return clients[turn] as pg.Client;
}
