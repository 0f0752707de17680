import pg from 'pg';
import { ConnectionLost, ServerFault } from '../../base/errors.js';
import type { Row, TextRow } from '../row.js';
import { digestMax, prepared, type Statement, type Values } from '../statement.js';
import type { BoundValue, Wire } from './wire.js';

export interface Part {
  readonly statement: Statement;
  /** In the order of its parameters. */
  readonly values: readonly BoundValue[];
  /** Gets each row: on a tapped connection (row-tap.ts) as PostgreSQL sent it, valid until it returns, else as the texts that pg made. */
  onRow?(row: Row | TextRow): void;
}

/**
 * Statements that are all bound before one Sync, so that they share an implicit transaction and a round trip, and PostgreSQL skips the
 * rest after an error (PostgreSQL 55.2.3 and 55.2.4). With `isNamed` a connection keeps the last of them. `done` gets the command
 * tags (55.7, CommandComplete) of the statements that completed; with an error, the next one failed. pg calls the methods.
 */
export class RoundTrip extends pg.Query {
  readonly #parts: readonly Part[];
  readonly #isNamed: boolean;
  readonly #tags: string[] = [];
  #failure: Error | null = null;
  /** pg replaces it while `query_timeout` runs, to end that timer, which would keep the process alive for as long. */
  declare callback: (error: Error | null) => void;

  constructor(parts: readonly Part[], isNamed: boolean, done: (error: Error | null, tags: readonly string[]) => void) {
    super('' as never, undefined, ((error: Error | null) => done(error, this.#tags)) as never);
    Object.assign(this, { queryMode: 'extended' });
    this.#parts = parts;
    this.#isNamed = isNamed;
  }

  /** pg sends the messages in one write. No part is sent where the connection keeps another text under one of the names. */
  prepare(wire: Wire): void {
    const texts = keptOn(wire);
    const other = this.#parts.find(({ statement: { name, text } }) => (texts.get(name) ?? text) !== text);
    if (other !== undefined) this.#failure = new Error(`the statement ${other.statement.name} has another text`);
    else for (const part of this.#parts) addPart(wire, part, this.#isNamed);
    wire.sync();
  }

  /** Takes no further row. */
  abandon(): void {
    this.#failure = new ConnectionLost('the statement was sent elsewhere');
  }

  handleDataRow({ fields }: { fields: Row | TextRow }): void {
    if (this.#failure !== null) return;
    try {
      this.#parts[this.#tags.length]?.onRow?.(fields);
    } catch (error) {
      this.#failure = error as Error; // a throw here would end the process
    }
  }

  handleCommandComplete({ text }: { text: string }): void {
    this.#tags.push(text);
  }

  /** Errors of pg that PostgreSQL did not send are errors of the connection. */
  handleError(error: Error): void {
    this.callback(error instanceof pg.DatabaseError ? error : new ConnectionLost(error.message));
  }

  /** The round trip has failed unless PostgreSQL sent CommandComplete for each statement: rows could be missing. */
  handleReadyForQuery(): void {
    const isWhole = this.#tags.length === this.#parts.length;
    this.callback(this.#failure ?? (isWhole ? null : new ServerFault('the statements ended without completing')));
  }
}

/** Writes Parse, unless the connection keeps the statement, then Bind and Execute. */
function addPart(wire: Wire, { statement, values }: Part, isNamed: boolean): void {
  const name = isNamed ? statement.name : '';
  if (!isNamed || !keep(wire, statement)) wire.parse({ name, text: statement.text });
  wire.bind({ statement: name, values });
  wire.execute({});
}

/**
 * Statements that a connection keeps, each with its plan: clients choose among thousands of combinations of filters and members, and a plan
 * over 131 partitions takes a megabyte of the backend. One resource cannot take the place of all others.
 */
const keptMax = { all: 100, ofResource: 12 };
/** The texts of the statements that a connection keeps, by name; the one that was used last is the last. */
const kept = new WeakMap<Wire, Map<string, string>>();

function keptOn(wire: Wire): Map<string, string> {
  const known = kept.get(wire);
  if (known !== undefined) return known;
  const texts = new Map<string, string>();
  kept.set(wire, texts);
  return texts;
}

/** The resource of a statement's name, which is its label's first part. */
const resourceOf = (name: string): string => name.slice(0, -digestMax).split('.')[0] as string;

/** Whether the connection keeps the statement already. If not it does from now on, and one that was not used for long makes room. */
function keep(wire: Wire, { name, text }: Statement): boolean {
  const texts = keptOn(wire);
  const isKept = texts.delete(name); // so that it becomes the last
  const siblings = isKept ? [] : [...texts.keys()].filter((each) => resourceOf(each) === resourceOf(name));
  const [oldest] = siblings.length >= keptMax.ofResource ? siblings : texts.size >= keptMax.all ? texts.keys() : [];
  if (oldest !== undefined) {
    texts.delete(oldest);
    wire.close({ type: 'S', name: oldest });
  }
  texts.set(name, text);
  return isKept;
}

/** Sets the sealed workspace until the end of the transaction: without it the tenant wall shows no row and takes none. */
export const guard = prepared('workspace-guard', "select set_config('gateway.workspace_id', $1, true)", ['sealed']);

/**
 * Without the other ways to a row the planner uses bitmap scans. Generic plans keep to the settings of their first run. EXPLAIN (ANALYZE, BUFFERS) of a pass over the rows of feature/plans:
 * by an index of the key:    37,291 buffers;
 * in the order of the table: 824 buffers.
 */
const guardInTableOrder = prepared(
  'workspace-guard-in-table-order',
  `${guard.text}, set_config('enable_indexscan', 'off', true), set_config('enable_seqscan', 'off', true)`,
  guard.parameters,
);

export const guardOf = ({ inTableOrder }: Statement): Statement => (inTableOrder ? guardInTableOrder : guard);

/** The values in the order of the statement's parameters. Throws when one is missing. */
export function boundValues({ name, parameters }: Statement, values: Values): BoundValue[] {
  return parameters.map((parameter) => {
    const value = values[parameter];
    if (value === undefined) throw new Error(`statement ${name} lacks a value for ${parameter}`);
    return typeof value === 'number' ? String(value) : value;
  });
}
