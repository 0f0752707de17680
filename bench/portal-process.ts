import pg from 'pg';
import Cursor from 'pg-cursor';
import { Connection } from '../src/db/connection.js';
import { Row, type TextRow } from '../src/db/row.js';
import type { WorkspaceId } from '../src/db/statement.js';
import { compileResource } from '../src/definition/compiled.js';
import { loadResources } from '../src/definition/load.js';
import type { Resource } from '../src/definition/resource.js';
import type { Key } from '../src/definition/row-serializer.js';
import { JsonBytes } from '../src/projection/json-bytes.js';
import { parseKeyring } from '../src/projection/keyring.js';
import { compileRedaction } from '../src/projection/redact.js';
import { LastRowKey, rangeValues } from '../src/read/chunks.js';
import type { Reading, ReadingResult } from './portal.js';

/** Process that reads work orders in one of two ways and writes them as JSON that is thrown away: the task as JSON in its argument. */
const { mode, url, workspace, rows: rowsWanted, chunkRows } = JSON.parse(process.argv[2] as string) as Reading;
const werkbonnen = loadResources('').find(({ name }) => name === 'werkbonnen') as Resource;
const compiled = compileResource(
  werkbonnen,
  {
    keyring: parseKeyring('{}'),
    legacy: false,
    decrypt: 'native',
    reportMismatch: () => {},
    redaction: compileRedaction({}, []),
  },
  () => {},
);
const { serializer } = compiled;
const { rows: statements } = compiled.statements.list([]);
const json = new JsonBytes(65_536);
let count = 0;
let bytes = 0;

const before = process.cpuUsage();
const startedMs = performance.now();
await (mode === 'keyset' ? byKey() : byPortal());
const wallMs = performance.now() - startedMs;
const { user, system } = process.cpuUsage(before);
const peakMb = (process.resourceUsage().maxRSS * 1024) / 1e6;
const result = { wallMs, cpuMs: (user + system) / 1000, peakMb, rows: count, bytes } satisfies ReadingResult;
process.stdout.write(JSON.stringify(result));

/** Chunk after chunk, each a statement that begins behind the last key; the rows are written while they arrive. */
async function byKey(): Promise<void> {
  const options = { url, connectTimeoutMs: 5000, namedStatements: true };
  const connection = await Connection.open(options);
  let last: Key | null = null;
  while (count < rowsWanted) {
    const statement = last === null ? statements.all : statements.after;
    const values = { ...rangeValues({ after: last, until: null }), limit: Math.min(chunkRows, rowsWanted - count) };
    const end = new LastRowKey(serializer.keyAt);
    json.clear();
    await connection.run({ statement, workspace: workspace as WorkspaceId, values }, (row) => {
      serializer.write(row, workspace, json);
      end.set(row);
      count++;
    });
    if (end.key === null) break;
    last = end.key;
    bytes += json.length;
  }
  connection.close();
}

/** One statement whose portal stays open from the first row to the last; the next rows are asked for ahead. */
async function byPortal(): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  await client.query('begin');
  await client.query("select set_config('gateway.workspace_id', $1, true)", [workspace]);
  const asText = { getTypeParser: () => (value: string) => value };
  const config = { rowMode: 'array' as const, types: asText } as unknown as ConstructorParameters<typeof Cursor>[2];
  const cursor = client.query(
    new Cursor<TextRow>(statements.all.text, [workspace, String(rowsWanted)], config as never),
  );
  for (let rows = await cursor.read(chunkRows); rows.length > 0; ) {
    const ahead = cursor.read(chunkRows);
    json.clear();
    for (const row of rows) serializer.write(Row.of(row), workspace, json);
    count += rows.length;
    bytes += json.length;
    rows = await ahead;
  }
  await cursor.close();
  await client.query('commit');
  await client.end();
}
