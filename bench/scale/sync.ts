import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { markStatement } from '../../src/postgres/wal-position.js';
import { makeCursorContext } from '../../src/serve/read/cursor.js';
import { encodeToken, Pass, watchTimeline } from '../../src/serve/sync/pass.js';
import { makeTokenSeal } from '../../src/serve/sync/token-seal.js';
import { Client } from '../client.js';
import { treeCpuMsOf } from '../processes.js';
import { figure, type Measured } from '../report.js';
import { rowsOf } from '../stage.js';
import { wallKey, workspaceOf } from './data.js';
import type { Subject } from './subject.js';

/** Pause between two looks at the running statements. */
const lookMs = 20;

/**
 * Sync of the large workspace: its digest, the ids of one group, and a pass that finds nothing, request by request. PostgreSQL itself is
 * asked how long each statement has been running, so that one that reads too much is seen.
 */
export async function syncOf(subject: Subject): Promise<Measured> {
  const client = await Client.connect(subject);
  const since = `since=${await tokenOfNow(subject)}`;
  const requests: Readonly<Record<string, string>> = {
    'digest, depth 0': `/digest?depth=0&${since}`,
    'digest, depth 2': `/digest?depth=2&${since}`,
    'ids of one group of 256': `/ids?prefix=a3&${since}`,
    'a pass that finds nothing': `?perPage=1000&${since}`,
    'a pass over one group of 256': '?perPage=10000&prefix=a3',
  };
  const table: string[][] = [];
  let longest = 0;
  try {
    for (const [name, path] of Object.entries(requests)) {
      const watch = watchStatements(subject.replicaUrl);
      const [cpuMs, startedMs] = [treeCpuMsOf(subject.replicaPid), performance.now()];
      const answers = await readAll(client, `/api/v1/sync/werkbonnen${path}`).finally(watch.end);
      const seconds = (performance.now() - startedMs) / 1000;
      const cpu = (treeCpuMsOf(subject.replicaPid) - cpuMs) / 1000;
      const { longestMs, statements } = await watch.end();
      longest = Math.max(longest, longestMs);
      table.push([name, String(answers), ...[seconds, cpu].map(figure), String(statements), figure(longestMs)]);
    }
  } finally {
    client.close();
  }
  const note = `Each request is many statements, and each reads a range of keys. The statements are those seen by a look every ${lookMs} ms, and the longest had run so long when it was seen last; a busy machine makes them longer.`;
  const head = ['', 'requests', 'wall, s', 'replica CPU, s', 'statements seen', 'longest statement, ms'];
  return {
    figures: { 'Sync of all work orders: longest statement': longest },
    tables: [{ title: 'Sync of the large workspace', note, head, rows: table }],
  };
}

/** The token of a pass that would end now. */
async function tokenOfNow({ replicaUrl }: Subject): Promise<string> {
  const [mark] = await rowsOf(replicaUrl, markStatement.text);
  const pass = new Pass(
    null,
    null,
    watchTimeline(() => undefined),
  );
  pass.accept([mark as string[]]);
  return encodeToken(
    makeTokenSeal(wallKey),
    makeCursorContext(workspaceOf(0), 'sync token werkbonnen', {}),
    pass.position,
  );
}

/** Reads the answer, and all pages behind it; returns the number of requests. */
async function readAll(client: Client, first: string): Promise<number> {
  if (!first.includes('perPage')) {
    const { status } = await client.get(first);
    if (status !== 200) throw new Error(`${first} was answered ${status}`);
    return 1;
  }
  for (let [requests, path] = [1, first]; ; requests++) {
    const { pagination } = await client.page(path);
    if (pagination.nextCursor === null) return requests;
    path = `${first.replace(/since=[^&]+/, '').replace(/[?&]+$/, '')}&cursor=${pagination.nextCursor}`;
  }
}

/** Looks at the gateway's statements on the replica until `end`. */
function watchStatements(url: string) {
  let isOver = false;
  let longestMs = 0;
  const seen = new Set<string>();
  const look = async (): Promise<void> => {
    const client = new pg.Client(url);
    await client.connect();
    for (; !isOver; await sleep(lookMs)) {
      const { rows } = await client.query<{ id: string; ms: number }>(
        `select pid || ' ' || query_start as id, (extract(epoch from clock_timestamp() - query_start) * 1000)::float8 as ms
         from pg_stat_activity where usename = 'gateway_reader' and state = 'active' and query ~ 'gateway"'`,
      );
      for (const { id, ms } of rows) {
        seen.add(id);
        longestMs = Math.max(longestMs, ms);
      }
    }
    await client.end();
  };
  const looking = look();
  return {
    /** Ends the looks; may be called again. */
    end: async () => {
      isOver = true;
      await looking;
      return { longestMs, statements: seen.size };
    },
  };
}
