import type pg from 'pg';
import { Login } from './wire/wire.js';

/** Whatever the database's defaults are: files of SQL have backslashes in plain strings, and names are noted as they are. */
const session = [
  { name: 'standard_conforming_strings', value: 'on', level: 'failed' },
  { name: 'quote_all_identifiers', value: 'off', level: 'failed' },
] as const;

export async function asAdmin<T>(adminUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const login = new Login(session);
  const client = await login.connect(() => ({
    connectionString: adminUrl,
    connectionTimeoutMillis: 10_000,
    application_name: 'gateway-admin',
  }));
  try {
    return await work(client); // the next statement reports a connection that died
  } finally {
    await client.end();
  }
}
