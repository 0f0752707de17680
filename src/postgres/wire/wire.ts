import type { EventEmitter } from 'node:events';
import type { Socket } from 'node:net';
import pg from 'pg';

/**
 * The connection inside a client of pg. It is not part of pg's API, so only this folder uses it, and pg is pinned to one version.
 */
export interface Wire extends EventEmitter {
  readonly stream: Socket;
  /** Each writes a message of the extended query protocol (PostgreSQL 55.7). */
  parse(statement: { readonly name: string; readonly text: string }): void;
  bind(portal: { readonly statement: string; readonly values: readonly BoundValue[] }): void;
  execute(portal: object): void;
  /** Frees a prepared statement (`type` S) and its plan. */
  close(target: { readonly type: 'S'; readonly name: string }): void;
  sync(): void;
}

/** A value of a parameter: its text, its bytes in binary format, or NULL. */
export type BoundValue = string | null | Buffer;

export function wireOf(client: pg.ClientBase): Wire {
  return (client as unknown as { connection: Wire }).connection;
}

/** The socket of a client, for corking, pausing and destroying it. */
export function streamOf(client: pg.ClientBase): Socket {
  return wireOf(client).stream;
}

/** The process that the server announced at the login; a pooler announces a number of its own. */
export function announcedPid(client: pg.ClientBase): number | null {
  return (client as unknown as { processID: number | null }).processID;
}

const { getStartupConf } = pg.Client.prototype as unknown as { getStartupConf(): Record<string, string> };

/**
 * A client whose sessions print times as serializers and cursors read them: what a client asks for at the login comes before the settings
 * of its role (PostgreSQL 19.1.3), and poolers keep these two, because the JDBC driver sends them.
 */
export class SessionClient extends pg.Client {
  getStartupConf(): Record<string, string> {
    return { ...getStartupConf.call(this), TimeZone: 'UTC', DateStyle: 'ISO' };
  }
}
