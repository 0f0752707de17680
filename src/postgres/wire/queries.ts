import pg from 'pg';
import { ConnectionLost, isNameMixUp, ServerFault } from '../database-errors.js';
import type { Row, TextRow } from '../row.js';
import { digestMax, prepareSql, type Statement, type Values } from '../statement.js';
import type { BoundValue, Wire } from './wire.js';

export interface Binding {
  readonly statement: Statement;
  /** Values in the order of the statement's parameters. */
  readonly values: readonly BoundValue[];
  /** Gets each row: on a tapped connection (row-tap.ts) as PostgreSQL sent it, valid until `onRow` returns, otherwise as pg's texts. */
  onRow?(row: Row | TextRow): void;
}

/** The statement waited behind a slow one, and PostgreSQL has not begun it: the pool runs it on another connection. */
export class StatementMoved extends ConnectionLost {
  constructor() {
    super('the statement was sent elsewhere');
  }
}

/** A pooler chose a server connection that lacks the statement (26000), or has another of its name (42P05). */
export class StatementMixedUp extends ServerFault {
  override readonly helps = 'new connection';

  constructor(readonly code: string) {
    super(
      `PostgreSQL error ${code}: a pooler loses prepared statements: PgBouncer is older than 1.21, or max_prepared_statements is 0`,
    );
  }
}

/**
 * Binds all statements before one Sync, so that they share an implicit transaction and a round trip, and PostgreSQL skips the rest after
 * an error (PostgreSQL 55.2.3 and 55.2.4). `onDone` gets the command tags (55.7, CommandComplete) of the statements that completed; with an
 * error, the next one failed. pg calls the methods. Example of the first list on a connection, guard and statement, with `isNamed`:
 *
 *   sent:      Parse guard, Bind, Execute, Parse list, Bind, Execute, Sync
 *   received:  …, DataRow of the guard, CommandComplete, …, a DataRow for each row, CommandComplete, ReadyForQuery
 *
 * The connection keeps both statements, so the second list sends no Parse. It may be sent before the first one is answered.
 */
export class RoundTrip extends pg.Query {
  readonly #tags: string[] = [];
  /** Numbers of the statements whose Parse the round trip sends. */
  readonly #parsed: number[] = [];
  #failure: Error | null = null;
  /** pg replaces this property while its `query_timeout` runs: the new callback ends the timer, which would keep the process alive. */
  declare callback: (error: Error | null) => void;

  constructor(
    private readonly bindings: readonly Binding[],
    private readonly isNamed: boolean,
    onDone: (error: Error | null, tags: readonly string[]) => void,
  ) {
    super('' as never, undefined, ((error: Error | null) => onDone(error, this.#tags)) as never);
    Object.assign(this, { queryMode: 'extended' });
  }

  /** Sends the messages in one write, as pg does. Sends no statement whose name stands for another text on the connection. */
  prepare(wire: Wire): void {
    const names = getNamedStatements(wire);
    const other = this.bindings.find(({ statement: { name, text } }) => (names.texts.get(name) ?? text) !== text);
    if (other !== undefined) this.#failure = new Error(`the statement ${other.statement.name} has another text`);
    else
      for (const [i, bound] of this.bindings.entries())
        if (sendStatement(wire, names, bound, this.isNamed)) this.#parsed.push(i);
    wire.sync();
  }

  /** Ignores all further rows. */
  abandon(): void {
    this.#failure = new StatementMoved();
  }

  handleDataRow({ fields }: { fields: Row | TextRow }): void {
    if (this.#failure !== null) return;
    try {
      this.bindings[this.#tags.length]?.onRow?.(fields);
    } catch (error) {
      this.#failure = error as Error; // a throw here would end the process
    }
  }

  handleCommandComplete({ text }: { text: string }): void {
    this.#tags.push(text);
  }

  /** Errors of pg that PostgreSQL did not send are errors of the connection. */
  handleError(error: Error, wire: Wire): void {
    if (!(error instanceof pg.DatabaseError)) return this.callback(new ConnectionLost(error.message));
    const names = getNamedStatements(wire);
    const failed = this.#tags.length;
    const name = this.bindings[failed]?.statement.name ?? '';
    const reason = this.isNamed && isNameMixUp(error) ? findFailureCause(names, name, error) : error;
    names.failures ??= new Map();
    for (const i of this.#parsed)
      if (i >= failed) names.failures.set(this.bindings[i]?.statement.name as string, i === failed ? reason : null);
    this.callback(reason);
  }

  /** The round trip has failed unless PostgreSQL sent CommandComplete for each statement: rows could be missing. */
  handleReadyForQuery(): void {
    const isWhole = this.#tags.length === this.bindings.length;
    this.callback(this.#failure ?? (isWhole ? null : new ServerFault('the statements ended without completing')));
  }
}

/** Sends Parse, unless the connection keeps the statement, then Bind and Execute. Returns whether it sent a Parse with a name. */
function sendStatement(wire: Wire, names: NamedStatements, { statement, values }: Binding, isNamed: boolean): boolean {
  const name = isNamed ? statement.name : '';
  const isKept = isNamed && keepStatement(wire, names, statement);
  if (!isKept) wire.parse({ name, text: statement.text });
  wire.bind({ statement: name, values });
  wire.execute({});
  return isNamed && !isKept;
}

/**
 * Bound for the statements that a connection keeps, each with its plan: clients choose among thousands of combinations of filters and
 * fields, and a plan over 131 partitions takes a megabyte of the backend. One resource cannot evict all others.
 */
const keptMax = { all: 100, ofResource: 12 };

interface NamedStatements {
  /** In order of use: the last is the most recently used. */
  readonly texts: Map<string, string>;
  /** Reasons, from the first error on, why names were not prepared; null: PostgreSQL skipped its Parse, or perhaps a Close. */
  failures?: Map<string, Error | null>;
}

const namesOf = new WeakMap<Wire, NamedStatements>();

function getNamedStatements(wire: Wire): NamedStatements {
  const known = namesOf.get(wire);
  if (known !== undefined) return known;
  const names = { texts: new Map<string, string>() };
  namesOf.set(wire, names);
  return names;
}

/**
 * Finds why a statement met 26000 or 42P05. A connection without an earlier error has completed each Parse that was sent on it, so a pooler
 * is between. Otherwise the statement has the cause of the one that should have prepared it.
 */
function findFailureCause({ failures }: NamedStatements, name: string, { code = '' }: pg.DatabaseError): Error {
  if (failures === undefined) return new StatementMixedUp(code);
  return failures.get(name) ?? new StatementMoved();
}

/** A statement's name begins with its label, whose first part is the resource. */
const getResourceOfName = (name: string): string => name.slice(0, -digestMax).split('.')[0] as string;

/** Returns whether the connection keeps the statement already. If not, it keeps it from now on and evicts the least recently used one. */
function keepStatement(wire: Wire, { texts }: NamedStatements, { name, text }: Statement): boolean {
  const isKept = texts.delete(name); // moves it to the end
  const siblings = isKept
    ? []
    : [...texts.keys()].filter((each) => getResourceOfName(each) === getResourceOfName(name));
  const [oldest] = siblings.length >= keptMax.ofResource ? siblings : texts.size >= keptMax.all ? texts.keys() : [];
  if (oldest !== undefined) {
    texts.delete(oldest);
    wire.close({ type: 'S', name: oldest });
  }
  texts.set(name, text);
  return isKept;
}

/** Sets the workspace with its MAC until the end of the transaction: without it the tenant wall shows no row and takes none. */
export const guard = prepareSql('workspace-guard', "select set_config('gateway.workspace_id', $1, true)", ['mac']);

/**
 * Without the other ways to a row the planner uses bitmap scans. Generic plans keep to the settings of their first run. EXPLAIN (ANALYZE,
 * BUFFERS) of a pass over the rows of feature/plans:
 * by an index of the key:    37,291 buffers;
 * in the order of the table: 824 buffers.
 */
const guardInTableOrder = prepareSql(
  'workspace-guard-in-table-order',
  `${guard.text}, set_config('enable_indexscan', 'off', true), set_config('enable_seqscan', 'off', true)`,
  guard.parameters,
);

export const getGuard = ({ inTableOrder }: Statement): Statement => (inTableOrder ? guardInTableOrder : guard);

/** Puts the values in the order of the statement's parameters. Throws when one is missing. */
export function bindValues({ name, parameters }: Statement, values: Values): BoundValue[] {
  return parameters.map((parameter) => {
    const value = values[parameter];
    if (value === undefined) throw new Error(`statement ${name} lacks a value for ${parameter}`);
    return typeof value === 'number' ? String(value) : value;
  });
}
