import pg from 'pg';
import { connectionUrls } from '../db/connection-url.js';
import type { Settings } from '../settings.js';

const statementTimeoutMs = 5000;

/** Opens a connection over which a server is checked. Rejects with the error of pg. */
export async function connectTo(url: string, { connectTimeoutMs }: Settings): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: connectTimeoutMs,
    query_timeout: statementTimeoutMs,
    application_name: 'gateway-check',
  });
  client.on('error', () => undefined); // the statement on a lost connection rejects
  await client.connect();
  return client;
}

/**
 * The first connection to each server, opened before a start reads its definitions and loads the larger part of the program: the servers
 * take some 20 ms to grant one, and its login needs the event loop four times.
 */
export class EarlyConnections {
  readonly #opened: Map<string, Promise<pg.Client>>;

  constructor(settings: Settings) {
    const urls = new Set([settings.replicaUrls, settings.primaryUrls].flatMap(connectionUrls));
    this.#opened = new Map([...urls].map((url) => [url, connectTo(url, settings)]));
    for (const client of this.#opened.values()) client.catch(() => undefined); // the check that takes it says so
  }

  /** The connection, which is the caller's to end; undefined when it was taken before. */
  take(url: string): Promise<pg.Client> | undefined {
    const client = this.#opened.get(url);
    this.#opened.delete(url);
    return client;
  }

  /** Ends the connections that were not taken. */
  close(): void {
    for (const url of this.#opened.keys())
      this.take(url)?.then(
        (client) => client.end(),
        () => undefined,
      );
  }
}
