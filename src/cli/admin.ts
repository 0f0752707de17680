import { loadResources } from '../definition/load.js';
import type { Resource } from '../definition/resource.js';
import { StartRefused } from '../errors.js';
import { loadSettings, type Settings, SettingsError } from '../settings.js';

/** The setting ADMIN_URL, which only `migrate`, `views`, `adopt` and `tokens` use. Throws SettingsError when it is not set. */
export function adminUrl(): string {
  const { adminUrl } = loadSettings(process.env);
  if (adminUrl !== '') return adminUrl;
  throw new SettingsError(
    'ADMIN_URL is not set: the connection URL of the primary for a role that may migrate and manage tokens.',
  );
}

/** Throws SettingsError: definitions are as unusable as settings that are wrong. */
export function definitions({ resourcesDir }: Settings): readonly Resource[] {
  try {
    return loadResources(resourcesDir);
  } catch (error) {
    throw error instanceof StartRefused ? new SettingsError(error.message) : error;
  }
}
