import type pg from 'pg';
import { SettingsError } from '../base/errors.js';
import { Login } from './wire/wire.js';

/** The oldest major version that the tests run on. */
const oldestMajor = 15;

/** The defaults of a database can differ: SQL files have backslashes in plain strings, and names are compared unquoted. */
const session = [
  { name: 'standard_conforming_strings', value: 'on', level: 'failed' },
  { name: 'quote_all_identifiers', value: 'off', level: 'failed' },
] as const;

/** Runs `work` on a connection of the administrator. Throws SettingsError for a server that is too old, and any error of `work`. */
export async function runAsAdmin<T>(adminUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const login = new Login(session);
  const config = { connectionString: adminUrl, connectionTimeoutMillis: 10_000, application_name: 'gateway-admin' };
  const client = await login.connect(() => config);
  try {
    const { rows } = await client.query(`select current_setting('server_version') as version`);
    const [{ version }] = rows;
    if (Number.parseInt(version, 10) < oldestMajor)
      throw new SettingsError(`ADMIN_URL leads to PostgreSQL ${version}: the gateway needs ${oldestMajor} or later.`);
    return await work(client); // the next statement reports a connection that died
  } finally {
    await client.end();
  }
}
