import { SettingsError } from '../base/errors.js';
import { loadSettings } from '../serve/settings.js';

/** Only commands of the operator use it. Throws SettingsError when it is not set. */
export function adminUrl(): string {
  const { adminUrl } = loadSettings(process.env);
  if (adminUrl !== '') return adminUrl;
  throw new SettingsError(
    'ADMIN_URL is not set: the connection URL of the primary for a role that may migrate and manage tokens.',
  );
}
