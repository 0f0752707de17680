import type { Observe } from '../base/events.js';
import { withServer } from './choice.js';
import type { Replica } from './replica.js';
import { prepared } from './statement.js';

const statement = prepared('sync_keys', 'select gateway.sync_keys()');

/** Derives keys of all keys of the wall that the database has. */
export function syncKeys(deps: {
  readonly replicas: readonly Replica[];
  readonly observe: Observe;
  readonly queueWaitMs: number;
}): Promise<Buffer[]> {
  return withServer(deps, {}, async ({ target }) => {
    const keys: Buffer[] = [];
    await target.short.run({ statement, workspace: null, values: {} }, { waitMs: deps.queueWaitMs }, (row) => {
      keys.push(Buffer.from(String(row.texts()[0]).slice('\\x'.length), 'hex'));
    });
    return keys;
  });
}
