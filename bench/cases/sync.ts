import { Client } from '../client.js';
import { treeCpuMsOf } from '../processes.js';
import type { Options } from '../report.js';
import { figure, type Measured } from '../report.js';
import { median } from '../rounds.js';
import { rowsOf, type Stage } from '../stage.js';

const changed = 10;

/** Measures a pass over 200,000 work orders, ten of which changed since the last pass, four of them by a part; and their digest. */
export async function syncCase(stage: Stage, { rounds }: Options): Promise<Measured> {
  const client = await Client.connect(stage);
  try {
    const everything = await pass(client, 'perPage=100000');
    await changeSome(stage);
    const since = `since=${everything.since}`;
    // The replica replays the changes meanwhile.
    for (let i = 0; (await pass(client, since)).rows < changed; i++) if (i > 100) throw new Error('no pass finds them');
    const [passes, cpus, digests, digestCpus]: [number[], number[], number[], number[]] = [[], [], [], []];
    for (let i = 0; i < rounds; i++) {
      const cpuMs = treeCpuMsOf(stage.replicaPid);
      const { ms, rows } = await pass(client, since);
      cpus.push(treeCpuMsOf(stage.replicaPid) - cpuMs);
      if (rows !== changed) throw new Error(`the pass has ${rows} records, not ${changed}`);
      passes.push(ms);
      const digestCpuMs = treeCpuMsOf(stage.replicaPid);
      digests.push((await client.get('/api/v1/sync/werkbonnen/digest')).ms);
      digestCpus.push(treeCpuMsOf(stage.replicaPid) - digestCpuMs);
    }
    const figures = {
      'Sync pass over 200,000 work orders, ten changed: time': passes,
      'Digest of 200,000 work orders: time': digests,
      "Digest of 200,000 work orders: replica's processors": digestCpus,
    };
    const table = {
      title: 'Sync',
      note: `All work orders with their actions and hours, of which ${changed} changed since the pass before: time of the whole pass and of the replica's processors, of the digest and of the replica's processors, and of the pass that reads everything. Medians of ${rounds}.`,
      head: ['', 'pass, ms', 'replica CPU, ms', 'digest, ms', 'replica CPU, ms', 'everything, s'],
      rows: [
        [
          '200,000 work orders',
          ...[median(passes), median(cpus), median(digests), median(digestCpus), everything.ms / 1000].map(figure),
        ],
      ],
    };
    return { figures, tables: [table] };
  } finally {
    client.close();
  }
}

/** Reads a pass to its end. */
async function pass(client: Client, query: string): Promise<{ ms: number; rows: number; since: string }> {
  let [ms, rows, path] = [0, 0, `/api/v1/sync/werkbonnen?${query}`];
  for (;;) {
    const answer = await client.page(path);
    ms += answer.ms;
    rows += answer.pagination.count;
    if (answer.pagination.nextCursor === null) return { ms, rows, since: answer.pagination.since };
    path = `/api/v1/sync/werkbonnen?perPage=100000&cursor=${answer.pagination.nextCursor}`;
  }
}

async function changeSome({ primaryUrl, workspace }: Stage): Promise<void> {
  const some = (table: string, column: string, from: number, count: number): string =>
    `(select distinct ${column} from app.${table} where workspace_id = $1 order by 1 offset ${from} limit ${count})`;
  const own = `update app.werkbonnen set omschrijving = 'bench' where id in ${some('werkbonnen', 'id', 0, 6)}`;
  await rowsOf(primaryUrl, own, [workspace]);
  const part = `update app.werkbon_uren set medewerker = 'bench' where workspace_id = $1
    and id in (select distinct on (werkbon_id) id from app.werkbon_uren
      where werkbon_id in ${some('werkbon_uren', 'werkbon_id', 1000, 4)})`;
  await rowsOf(primaryUrl, part, [workspace]);
}
