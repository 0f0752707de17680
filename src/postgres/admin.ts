import type pg from 'pg';
import { Login } from './wire/wire.js';

export async function asAdmin<T>(adminUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  // Files of SQL have backslashes in plain strings, whatever the database's default.
  const login = new Login([{ name: 'standard_conforming_strings', value: 'on', level: 'failed' }]);
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
