import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import pg from 'pg';
import { isRefusedStartup, listStartups, type SessionSetting, type Startup } from './session.js';

/** The connection inside a client of pg is not part of its API, so only this folder uses it, and pg is pinned. */
export interface Wire extends EventEmitter {
  readonly stream: Socket;
  /** The messages of the extended query protocol (PostgreSQL 55.7). */
  parse(statement: { readonly name: string; readonly text: string }): void;
  bind(portal: { readonly statement: string; readonly values: readonly BoundValue[] }): void;
  execute(portal: object): void;
  close(target: { readonly type: 'S'; readonly name: string }): void;
  sync(): void;
}

export type BoundValue = string | null | Buffer;

export function getWire(client: pg.ClientBase): Wire {
  return (client as unknown as { connection: Wire }).connection;
}

export function getStream(client: pg.ClientBase): Socket {
  return getWire(client).stream;
}

/** Returns the number that the server announced; a pooler announces another one. */
export function getAnnouncedPid(client: pg.ClientBase): number | null {
  return (client as unknown as { processID: number | null }).processID;
}

const { getStartupConf } = pg.Client.prototype as unknown as { getStartupConf(): Record<string, string> };

/** Parameters of the login come before the settings of its role (PostgreSQL 19.1.3). */
class SessionClient extends pg.Client {
  constructor(
    config: pg.ClientConfig,
    private readonly startup: Startup,
  ) {
    super(config);
    this.on('error', () => undefined); // without a listener a dying backend would end the process
  }

  getStartupConf(): Record<string, string> {
    const given = getStartupConf.call(this);
    const options = [given.options, this.startup.options].filter(Boolean).join(' ');
    return { ...given, ...this.startup, ...(options !== '' && { options }) };
  }
}

/** Logs in to one server, with the settings that it takes. */
export class Login {
  readonly #startups: readonly Startup[];
  #first = 0;

  constructor(settings: readonly SessionSetting[]) {
    this.#startups = listStartups(settings);
  }

  /** Calls `makeConfig` for each attempt. Rejects as pg does. */
  async connect(makeConfig: () => pg.ClientConfig): Promise<pg.Client> {
    for (let i = this.#first; ; i++) {
      const client = new SessionClient(makeConfig(), this.#startups[i] as Startup);
      try {
        await client.connect();
        this.#first = i;
        return client;
      } catch (error) {
        client.end().catch(() => {});
        if (i === this.#startups.length - 1 || !isRefusedStartup(error as Record<string, unknown>)) throw error;
      }
    }
  }
}
