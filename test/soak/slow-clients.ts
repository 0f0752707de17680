import { listEncodings } from '../support/decompressed.js';
import { type FaultCluster, faultCluster } from '../support/fault-cluster.js';
import { asInProduction, serveProcess } from '../support/serve-process.js';
import { slowClients } from '../support/slow-clients.js';
import type { Figures } from './figures.js';

const rows = 200_000;
const clients = 75;
const bytesPerSecond = 20_000;
const seconds = 90;
const megabytesMax = 256;

/** Clients reading pages of 200,000 rows at 20 KB/s, in each encoding. The short form of this is in test/fault/serve.test.ts. */
export async function soakSlowClients(): Promise<Figures> {
  const setUp = await faultCluster({ replicas: 1 });
  try {
    await setUp.sql(
      `insert into app.installaties (id, workspace_id, klant_id, naam, omschrijving)
       select gen_random_uuid(), workspace_id, klant_id, naam, md5(n::text) || md5(n::text || naam)
       from (select * from app.installaties where workspace_id = $1 limit 1) one, generate_series(1, $2::int) n`,
      [setUp.workspaces[0]?.id, rows],
    );
    await setUp.caughtUp();
    const measured: Figures[] = [];
    for (const encoding of ['identity', ...listEncodings]) measured.push(await measure(setUp, encoding));
    return {
      ok: measured.every(({ ok }) => ok),
      figures: Object.assign({ Node: process.version }, ...measured.map(({ figures }) => figures)),
    };
  } finally {
    await setUp.stop();
  }
}

async function measure(setUp: FaultCluster, encoding: string): Promise<Figures> {
  const bounds = { largePagesPerToken: clients, largePagesPerWorkspace: clients };
  const serving = await serveProcess(setUp.settings(bounds), asInProduction);
  const reading = slowClients(`${serving.url}/api/v1/installaties?perPage=${rows}`, {
    token: await setUp.token(),
    count: clients,
    bytesPerSecond,
    encoding,
  });
  let [megabytes, sessionsMax, replayMsMax] = [0, 0, 0];
  for (let second = 0; second < seconds; second++) {
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const metrics = await (await fetch(`${serving.opsUrl}/metrics`)).text();
    const bytes = Number(/^process_resident_memory_bytes (\S+)$/m.exec(metrics)?.[1]);
    megabytes = Math.max(megabytes, bytes / 2 ** 20);
    if (second < 40) continue; // until all have begun and the socket buffers are full, the pages stream
    sessionsMax = Math.max(sessionsMax, await sessionsInUse(setUp));
    const startedMs = performance.now();
    await setUp.sql('vacuum app.installaties');
    await setUp.caughtUp();
    replayMsMax = Math.max(replayMsMax, performance.now() - startedMs);
  }
  const alive = reading.reading();
  const encodings = Object.entries(reading.encodings()).map(([name, count]) => `${count} ${name}`);
  const megabytesRead = Math.round(reading.read() / 1e6);
  reading.stop();
  serving.child.kill('SIGTERM');
  await serving.exited;
  return {
    ok: alive === clients && megabytes <= megabytesMax,
    figures: {
      [`${encoding}: clients still reading at the end`]: encodings.join(', '),
      [`${encoding}: megabytes they read`]: megabytesRead,
      [`${encoding}: largest resident memory of the gateway (MB)`]: Math.round(megabytes),
      [`${encoding}: most sessions running a statement at a look`]: sessionsMax,
      [`${encoding}: longest VACUUM and its replay (ms)`]: Math.round(replayMsMax),
    },
  };
}

/** Counts sessions of the gateway that are reading rows. */
async function sessionsInUse(setUp: FaultCluster): Promise<number> {
  const rows = await setUp.cluster.replicas[0]?.query<{ n: string }>(
    `select count(*) as n from pg_stat_activity where usename = 'gateway_reader' and state <> 'idle' and query ~ 'from "gateway"'`,
  );
  return Number(rows?.[0]?.n);
}
