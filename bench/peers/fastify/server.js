// The same two reads with Fastify and pg, as a good engineer writes them in an afternoon: tokens looked up and cached, a
// rate limit, response schemas, prepared statements on a pool, an ETag, pages by cursor. Settings: PORT, DATABASE_URL.
import { createHash } from 'node:crypto';
import rateLimit from '@fastify/rate-limit';
import Fastify from 'fastify';
import { LRUCache } from 'lru-cache';
import pg from 'pg';
import { installatie, list, listQuery } from './schemas.js';

pg.types.setTypeParser(pg.types.builtins.NUMERIC, Number.parseFloat);
pg.types.setTypeParser(pg.types.builtins.INT8, Number);
pg.types.setTypeParser(pg.types.builtins.DATE, (text) => text);

const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL, max: Number(process.env.POOL_SIZE ?? 8) });
const app = Fastify({ logger: { level: 'error' } });
const tokens = new LRUCache({ max: 10_000, ttl: 5000 });
const columns = `id, customer_id as "customerId", naam, omschrijving, locatie, merk, type, serienummer, bouwjaar,
  inbedrijfstelling, koudemiddel, koudemiddel_gwp as "koudemiddelGwp", vulling_kg as "vullingKg",
  interne_notities as "interneNotities", lmra_verplicht as "lmraVerplicht", version, created_at as "createdAt",
  updated_at as "updatedAt"`;

app.addHook('onRequest', async (request, reply) => {
  const [, token] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '') ?? [];
  const access = token && (await accessOf(token));
  if (!access || access.expiresAt < Date.now()) return reply.code(401).send({ title: 'Unauthorized', status: 401 });
  if (!access.scopes.has('read:installaties')) return reply.code(403).send({ title: 'Forbidden', status: 403 });
  request.access = access;
});
await app.register(rateLimit, {
  max: 100_000_000,
  timeWindow: '1 minute',
  keyGenerator: (request) => request.access.id,
});

app.get('/installaties/:id', { schema: { response: { 200: installatie } } }, async (request, reply) => {
  const { workspace } = request.access;
  const [row] = await query(workspace, {
    name: 'detail',
    text: `select ${columns} from gateway.installaties where workspace_id = $1 and id = $2`,
    values: [workspace, request.params.id],
  });
  if (!row) return reply.code(404).send({ title: 'Not found', status: 404 });
  const etag = `"v${row.version}"`;
  reply.header('ETag', etag).header('Cache-Control', 'no-store');
  return request.headers['if-none-match'] === etag ? reply.code(304).send() : row;
});

app.get('/installaties', { schema: { querystring: listQuery, response: { 200: list } } }, async (request, reply) => {
  const { workspace } = request.access;
  const { limit, cursor } = request.query;
  const after = cursor ? JSON.parse(Buffer.from(cursor, 'base64url').toString()) : ['-infinity', null];
  const rows = await query(workspace, {
    name: cursor ? 'list-after' : 'list',
    text: `select ${columns} from gateway.installaties where workspace_id = $1
      ${cursor ? 'and (created_at, id) > ($3, $4)' : ''} order by created_at, id limit $2`,
    values: cursor ? [workspace, limit + 1, ...after] : [workspace, limit + 1],
  });
  const hasMore = rows.length > limit;
  if (hasMore) rows.pop();
  const last = rows.at(-1);
  const nextCursor = hasMore ? Buffer.from(JSON.stringify([last.createdAt, last.id])).toString('base64url') : null;
  if (hasMore)
    reply.header('Link', `<http://${request.host}/installaties?limit=${limit}&cursor=${nextCursor}>; rel="next"`);
  reply.header('Cache-Control', 'no-store');
  return { data: rows, pagination: { count: rows.length, hasMore, nextCursor } };
});

/** On a connection that has the workspace set for its session: the views show nothing without it. */
async function query(workspace, statement) {
  const client = await pool.connect();
  try {
    if (client.workspace !== workspace) {
      await client.query("select set_config('gateway.workspace_id', $1, false)", [workspace]);
      client.workspace = workspace;
    }
    return (await client.query(statement)).rows;
  } finally {
    client.release();
  }
}

async function accessOf(token) {
  const hash = createHash('sha256').update(token).digest();
  const key = hash.toString('base64');
  let access = tokens.get(key);
  if (access === undefined) {
    const { rows } = await pool.query({ name: 'token', text: 'select * from gateway.find_token($1)', values: [hash] });
    const [row] = rows;
    access = row &&
      !row.revoked_at && {
        id: row.token_id,
        workspace: row.workspace_id,
        scopes: new Set(row.scopes.split(' ')),
        expiresAt: row.expires_at?.getTime() ?? Number.POSITIVE_INFINITY,
      };
    tokens.set(key, access ?? false);
  }
  return access;
}

process.on('SIGTERM', () => app.close().then(() => process.exit(0)));
await app.listen({ host: '127.0.0.1', port: Number(process.env.PORT) });
