import type { LockOptions } from '../migrate/lock.js';
import { say, wholeNumber } from './command.js';

/** The option --wait of commands that change the schema. */
export const waitOption = { type: 'string', default: '60' } as const;

/** The longest wait for another migration, from the value of --wait in seconds; the wait is announced on stderr. */
export function lockOptions(seconds: string): LockOptions {
  return { waitMs: wholeNumber('--wait', seconds, 0, 86_400) * 1000, onWait: say };
}
