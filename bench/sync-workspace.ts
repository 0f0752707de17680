import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { newToken, tokenHash } from '../src/http/token-format.js';
import type { Stage } from './stage.js';
import { caughtUp } from './standstill.js';

/** $1 is the id of the workspace, and of its only user, customer and installation; a work order has 3.1 parts. */
const frame = [
  `insert into app.workspaces (id, naam) values ($1, 'Large')`,
  `insert into app.users (id, workspace_id, naam, email, rol) values ($1, $1, 'Bench', 'bench@example.com', 'owner')`,
  `insert into app.klanten (id, workspace_id) values ($1, $1)`,
  `insert into app.installaties (id, workspace_id, klant_id, naam) values ($1, $1, $1, 'Bench')`,
];
const rows = [
  `insert into app.werkbonnen (id, workspace_id, installatie_id, nummer, datum, status, omschrijving)
   select gen_random_uuid(), $1, $1, 'WB-' || n, date '2018-01-01' + (n * 3000 / $2)::int, 'gefactureerd', 'Periodiek onderhoud'
   from generate_series(1, $2::bigint) n`,
  `insert into app.werkbon_handelingen (id, workspace_id, werkbon_id, volgorde, code, omschrijving)
   select gen_random_uuid(), $1, id, n, 'LEK-01', 'Lekdichtheidscontrole' from app.werkbonnen, generate_series(1, 2) n
   where workspace_id = $1 and $2::int > 0`,
  `insert into app.werkbon_uren (id, workspace_id, werkbon_id, medewerker, datum, van, tot, uren)
   select gen_random_uuid(), $1, id, 'Jan', datum, '08:00', '09:00', 1 from app.werkbonnen, generate_series(1, 2) n
   where workspace_id = $1 and $2::int > 0 and (n = 1 or right(nummer, 1) = '0')`,
];

/** Makes a workspace with so many work orders beside the stage's own, or finds the one of an earlier run; with a token. */
export async function largeWorkspace(
  { primaryUrl, replicaUrl }: Stage,
  workOrders: number,
): Promise<{ workspace: string; token: string }> {
  const workspace = `00000000-0000-4000-8000-${String(workOrders).padStart(12, '0')}`;
  const token = newToken();
  const client = new pg.Client(primaryUrl);
  await client.connect();
  try {
    const { rows: found } = await client.query('select from app.workspaces where id = $1', [workspace]);
    if (found.length === 0) {
      await client.query('begin');
      for (const text of frame) await client.query(text, [workspace]);
      for (const text of rows) await client.query(text, [workspace, workOrders]);
      await client.query('commit');
      // Without a visibility map no scan is index-only.
      for (const table of ['werkbonnen', 'werkbon_handelingen', 'werkbon_uren'])
        await client.query(`vacuum (analyze) app.${table}`);
    }
    await client.query(
      'insert into app.api_tokens (id, workspace_id, created_by, naam, token_hash, scopes) values ($1, $2, $2, $3, $4, $5)',
      [randomUUID(), workspace, 'bench', tokenHash(token), ['read:werkbonnen']],
    );
    const replica = new pg.Client(replicaUrl);
    await replica.connect();
    await caughtUp(client, replica).finally(() => replica.end());
    return { workspace, token };
  } finally {
    await client.end();
  }
}
