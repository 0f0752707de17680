import { SettingsError } from '../base/errors.js';
import { loadSettings, type Settings } from '../settings.js';
import { UsageError } from './command.js';

/** Reads the URL for commands of the operator. Throws SettingsError if ADMIN_URL is not set. */
export function readAdminUrl(): string {
  const { adminUrl } = loadSettings(process.env);
  if (adminUrl !== '') return adminUrl;
  throw new SettingsError(
    'ADMIN_URL is not set: the connection URL of the primary for a role that may migrate and manage tokens.',
  );
}

/** Throws SettingsError without a folder of definitions, because the program's example is of another app. */
export function readSettingsOfApp(given: Partial<Settings> = {}): Settings {
  const settings = loadSettings(process.env, given);
  if (settings.resourcesDir !== '') return settings;
  throw new SettingsError(
    'RESOURCES_DIR is not set: the folder of the definitions of your app, such as config/resources of a draft.',
  );
}

export function requireViews(views: string | undefined): string {
  if (views !== undefined) return views;
  throw new UsageError('--views DIR is missing: the folder of the views of your app, such as sql/views of a draft.');
}
