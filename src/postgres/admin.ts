import pg from 'pg';

/** Runs `work` on a connection of the admin role, and closes the connection also after an error. */
export async function asAdmin<T>(adminUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({
    connectionString: adminUrl,
    connectionTimeoutMillis: 10_000,
    application_name: 'gateway-admin',
  });
  // The next statement reports a connection that died; without a listener the event would end the process.
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await work(client);
  } finally {
    await client.end();
  }
}
