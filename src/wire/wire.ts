import type { EventEmitter } from 'node:events';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import pg from 'pg';
import { StartRefused } from '../errors.js';

/**
 * The connection inside a client of pg. It is not part of pg's API, so only this folder uses it, pg is pinned to one version,
 * and `assertWireShape` checks the installed pg.
 */
export interface Wire extends EventEmitter {
  readonly stream: Socket;
  readonly parsedStatements: Record<string, string | undefined>;
  readonly submittedNamedStatements: Record<string, string | undefined>;
  /** Each writes a message of the extended query protocol (PostgreSQL 55.7). */
  parse(statement: { readonly name: string; readonly text: string }): void;
  bind(portal: { readonly statement: string; readonly values: readonly BoundValue[] }): void;
  execute(portal: object): void;
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

/** The private members of pg that this folder uses, each with its type. */
const members: Readonly<Record<string, string>> = {
  'client.pipeline': 'boolean',
  'client.processID': 'object',
  'client.connection.on': 'function',
  'client.connection.emit': 'function',
  'client.connection.stream.on': 'function',
  'client.connection.stream.cork': 'function',
  'client.connection.stream.uncork': 'function',
  'client.connection.stream.destroy': 'function',
  'client.connection.parse': 'function',
  'client.connection.bind': 'function',
  'client.connection.execute': 'function',
  'client.connection.sync': 'function',
  'client.connection.parsedStatements': 'object',
  'client.connection.submittedNamedStatements': 'object',
  'client._handleDataRow': 'function',
  'client._handleCommandComplete': 'function',
  'query.callback': 'function',
  'query.prepare': 'function',
  'query.submit': 'function',
  'query.requiresPreparation': 'function',
  'query.handleDataRow': 'function',
  'query.handleCommandComplete': 'function',
  'query.handleError': 'function',
  'query.handleReadyForQuery': 'function',
};

/** Throws StartRefused when the installed pg lacks a private member that this folder uses. Opens no connection. */
export function assertWireShape({ Client, Query }: Pick<typeof pg, 'Client' | 'Query'> = pg): void {
  const config = { host: 'localhost', user: 'shape', ssl: false, pipeline: true };
  const parts = { client: new Client(config), query: new Query('', undefined, () => undefined) };
  const wrong = Object.entries(members).filter(([path, type]) => typeof memberAt(parts, path) !== type);
  if (wrong.length === 0) return;
  const { version } = createRequire(import.meta.url)('pg/package.json') as { version: string };
  const list = wrong.map(([path, type]) => `${path} (${type})`).join(', ');
  throw new StartRefused(`pg ${version} is not the version that this gateway was made for; it lacks ${list}.`);
}

function memberAt(parts: object, path: string): unknown {
  return path.split('.').reduce<unknown>((part, name) => (part as Record<string, unknown> | undefined)?.[name], parts);
}
