import { loadResources } from '../definition/load.js';
import type { Resource } from '../definition/resource.js';
import { StartRefused } from '../errors.js';
import type { LockOptions } from '../migrate/migrations.js';
import { loadSettings, type Settings, SettingsError } from '../settings.js';
import { say, wholeNumber } from './command.js';

/** The setting ADMIN_URL, which only `migrate`, `views`, `adopt` and `tokens` use. Throws SettingsError when it is not set. */
export function adminUrl(): string {
  const { adminUrl } = loadSettings(process.env);
  if (adminUrl !== '') return adminUrl;
  throw new SettingsError(
    'ADMIN_URL is not set: the connection URL of the primary for a role that may migrate and manage tokens.',
  );
}

/** The option --wait of commands that change the schema. */
export const waitOption = { type: 'string', default: '60' } as const;

/** The longest wait for another migration, from the value of --wait in seconds; the wait is announced on stderr. */
export function lockOptions(seconds: string): LockOptions {
  return { waitMs: wholeNumber('--wait', seconds, 0, 86_400) * 1000, onWait: say };
}

/** Throws SettingsError: definitions are as unusable as settings that are wrong. */
export function definitions({ resourcesDir }: Settings): readonly Resource[] {
  try {
    return loadResources(resourcesDir);
  } catch (error) {
    throw error instanceof StartRefused ? new SettingsError(error.message) : error;
  }
}
