import { runToEnd } from './child.js';
import type { Paced, PacedResult } from './paced-process.js';
import { rowsOf, type Stage } from './stage.js';

const idsAsked = 1000;
const perSecond = 100;
const program = new URL('./paced-process.js', import.meta.url);

/** Paths of single installations of the stage's other workspace. */
export async function detailsOfOther({ other, replicaUrl }: Stage): Promise<string[]> {
  const text = 'select id from app.installaties where workspace_id = $1 order by id limit $2';
  const rows = await rowsOf(replicaUrl, text, [other.workspace, String(idsAsked)]);
  return rows.map(([id]) => `/api/v1/installaties/${id}`);
}

/** The length of a turn of paced requests, for a load run of so many seconds: of 300 requests the third slowest would be the p99. */
export function pacedSeconds(seconds: number): number {
  return 3 * seconds;
}

/** Asks for them at a fixed pace, in a process of its own. */
export async function runPaced(
  { origin, other }: Stage,
  paths: readonly string[],
  seconds: number,
): Promise<PacedResult> {
  const paced: Paced = { origin, token: other.token, paths, perSecond, seconds };
  return JSON.parse(await runToEnd(program, [JSON.stringify(paced)], {})) as PacedResult;
}
