import { runToEnd } from './child.js';
import type { Paced, PacedResult } from './paced-process.js';
import { rowsOf, type Stage } from './stage.js';

const idsAsked = 1000;
const perSecond = 100;
const program = new URL('./paced-process.js', import.meta.url);

/** Single installations of the stage's other workspace at a fixed pace, by a process of its own each time. */
export async function pacedDetails(
  { origin, other, replicaUrl }: Stage,
  seconds: number,
): Promise<() => Promise<PacedResult>> {
  const text = 'select id from app.installaties where workspace_id = $1 order by id limit $2';
  const rows = await rowsOf(replicaUrl, text, [other.workspace, String(idsAsked)]);
  const paths = rows.map(([id]) => `/api/v1/installaties/${id}`);
  const paced: Paced = { origin, token: other.token, paths, perSecond, seconds };
  return async () => JSON.parse(await runToEnd(program, [JSON.stringify(paced)], {})) as PacedResult;
}
