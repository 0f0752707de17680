import type { Observe } from '../base/events.js';
import { runOnServer } from './choice.js';
import type { Replica } from './replica.js';
import { prepareSql } from './statement.js';

const statement = prepareSql('sync_keys', 'select gateway.sync_keys()');

/** Derives a sync key from each key of the wall that the database has. */
export function makeSyncKeys(deps: {
  readonly replicas: readonly Replica[];
  readonly observe: Observe;
  readonly queueWaitMs: number;
}): Promise<Buffer[]> {
  return runOnServer(deps, {}, async ({ target }) => {
    const keys: Buffer[] = [];
    await target.short.run({ statement, workspace: null, values: {} }, { waitMs: deps.queueWaitMs }, (row) => {
      keys.push(Buffer.from(String(row.texts()[0]).slice('\\x'.length), 'hex'));
    });
    return keys;
  });
}
