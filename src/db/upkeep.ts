import { correctionOf, sqlStateOf } from '../errors.js';
import type { Observe } from '../events.js';
import type { Primary } from './primary.js';
import type { TextRow } from './row.js';
import type { Statement } from './statement.js';

/**
 * Runs a statement on the primary that no client waits for; a failure gives no rows, because the next run repeats it. One that no
 * repetition removes, such as a missing grant, is an event.
 */
export async function runUpkeep(
  primary: Primary,
  statement: Statement,
  values: Readonly<Record<string, string>>,
  observe: Observe,
): Promise<readonly TextRow[]> {
  try {
    return await primary.execute(statement, values);
  } catch (error) {
    const correction = correctionOf(error);
    const code = sqlStateOf(error) ?? '';
    if (correction !== undefined) observe({ type: 'upkeep_failed', statement: statement.name, code, correction });
    return [];
  }
}
