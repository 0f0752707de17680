import type pg from 'pg';
import type { ListName } from './lists.js';

/** SQL that adds ten rows among those of workspace $1: at the moment of a row that is there, or just after it. */
const insertAmong: Readonly<Record<ListName, string>> = {
  klanten: `insert into probe.klanten (id, workspace_id, created_at)
    select probe.new_id(), $1, created_at + jitter from picked`,
  installaties: `insert into probe.installaties (id, workspace_id, klant_id, naam, created_at)
    select probe.new_id(), $1, klant_id, 'tussengevoegd', created_at + jitter from picked`,
  werkbonnen: `insert into probe.werkbonnen (id, workspace_id, installatie_id, nummer, datum, status)
    select probe.new_id(), $1, installatie_id, 'tussen', datum, status from picked`,
  logboeken: `insert into probe.logboeken (workspace_id, tijdstip, entiteit, entiteit_id, actie, actor_type)
    select $1, tijdstip + jitter, 'klant', entiteit_id, 'gewijzigd', 'systeem' from picked`,
};

const rowsMax = 2000;

/** Adds rows to a list at random places, ties included, for as long as `work` runs. */
export async function whileInserting<T>(
  client: pg.Client,
  list: ListName,
  workspace: string | undefined,
  work: () => Promise<T>,
): Promise<{ result: T; inserted: number }> {
  const sql = `with picked as (
      select *, (random() < 0.5)::int * interval '1 microsecond' as jitter
      from probe.${list} where workspace_id = $1 and random() < 0.05 order by random() limit 10
    ) ${insertAmong[list]}`;
  let working = true;
  let inserted = 0;
  const inserting = (async () => {
    while (working && inserted < rowsMax) {
      inserted += (await client.query(sql, [workspace])).rowCount ?? 0;
      await new Promise((resolve) => setTimeout(resolve, 3)); // a walk must be able to outrun the rows
    }
  })();
  try {
    return { result: await work(), inserted };
  } finally {
    working = false;
    await inserting;
  }
}
