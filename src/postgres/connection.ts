import pg from 'pg';
import type { EventLoop } from '../base/flow/event-loop.js';
import { ConnectionLost, endsConnection, queryCanceled } from './database-errors.js';
import type { ResourceHealth } from './resource-health.js';
import type { Row, TextRow } from './row.js';
import { getResourceName, type Statement, type Values, type WorkspaceId } from './statement.js';
import { markStatement } from './wal-position.js';
import { type Binding, bindValues, getGuard, RoundTrip, StatementMixedUp, StatementMoved } from './wire/queries.js';
import { makeReusingSocket, tapRows } from './wire/row-tap.js';
import type { SessionSetting } from './wire/session.js';
import { getAnnouncedPid, getStream, getWire, Login } from './wire/wire.js';
import type { WorkspaceMac } from './workspace-mac.js';

/** `workspace` is null for statements that read no view. */
export interface Run {
  readonly statement: Statement;
  readonly workspace: WorkspaceId | null;
  readonly values: Values;
  /** Receives a mark of the server (wal-position.ts) from before the rows and one from after them. */
  readonly marks?: TextRow[] | undefined;
}

/** All connections share this state: when one meets a pooler that loses names, no statement is prepared by name any more. */
export class StatementNames {
  /** Listeners, called once. */
  readonly onLoss: (() => void)[] = [];

  constructor(public areUsed: boolean) {}

  /** Prepares no names until a restart. */
  stopUse(): void {
    const wereUsed = this.areUsed;
    this.areUsed = false;
    if (wereUsed) for (const tell of this.onLoss) tell();
  }
}

export interface LoginBounds {
  /** Measured by the loop's clock: a login that this process delays is not the server's fault. */
  readonly connectTimeoutMs: number;
  readonly loop: EventLoop;
}

export interface ConnectionOptions extends LoginBounds {
  readonly names: StatementNames;
  /** Settings to send at each login. */
  readonly session: readonly SessionSetting[];
  readonly computeMac: WorkspaceMac;
}

export type Connect = () => Promise<Connection>;

/** The name that pg_stat_activity shows. */
export const applicationName = 'workspace-data-gateway';

/** A statement in flight, or the leased work of a transaction. Times are by the loop's clock. */
interface StatementInFlight {
  readonly atMs: number;
  readonly stallMsMax?: number | undefined;
  readonly resource: string;
  /** Makes the statement run on another connection. Absent: it is a transaction, which cannot move. */
  readonly move?: () => void;
  /** When the connection ends, because no client waits for the statement; absent: it does not. */
  endsMs?: number;
  /** Rejects the work of a transaction, while the server may still hold it. Absent: it is a statement. */
  giveUp?: () => void;
  isOverdue: boolean;
}

/** Makes an error with the SQLSTATE of statement_timeout: such a statement is not repeated, because that would double the load. */
function makeStatementTimeout(): Error {
  return Object.assign(new Error('the statement took too long'), { code: queryCanceled, severity: 'ERROR' });
}

/** After a read of this size the other sockets get their turn, because libuv reads up to 32 times from one socket. */
const largeReadBytes = 12_288;
/** Time for PostgreSQL to close a connection before the gateway destroys it. */
const closeMsMax = 1000;

/** Opens a client that passes on rows as PostgreSQL sent them (row-tap.ts). Rejects with ConnectionLost, or the refusal of the login. */
export async function openClient(
  url: string,
  { connectTimeoutMs, loop, pipeline = false }: LoginBounds & { readonly pipeline?: boolean },
  login: Login,
): Promise<pg.Client> {
  let reused = makeReusingSocket();
  const makeConfig = (): pg.ClientConfig => {
    reused = makeReusingSocket();
    const { socket } = reused;
    return {
      connectionString: url,
      stream: () => socket,
      application_name: applicationName,
      keepAlive: true,
      keepAliveInitialDelayMillis: 30_000, // a firewall forgets connections that are silent for minutes
      pipeline,
    } as pg.ClientConfig;
  };
  const giveUp = (): unknown => reused.socket.destroy(new Error(`no login in ${connectTimeoutMs / 1000} s`));
  const cancel = loop.callAfter(connectTimeoutMs, giveUp);
  try {
    const client = await login.connect(makeConfig);
    tapRows(getWire(client));
    reused.reuse();
    return client;
  } catch (error) {
    if (error instanceof pg.DatabaseError) throw error;
    throw new ConnectionLost(`cannot connect: ${(error as NodeJS.ErrnoException).code ?? (error as Error).message}`);
  } finally {
    cancel();
  }
}

/**
 * An open connection takes statements; a closing one closes when the statements in flight have ended. No client awaits the statement of
 * a connection that is given up, and its server can still run it. An orphaned connection is a given-up one whose socket has ended.
 */
const transitions = {
  open: { close: 'closing', giveUp: 'given up', end: 'ended' },
  closing: { close: 'closing', giveUp: 'given up', end: 'ended' },
  'given up': { close: 'given up', giveUp: 'given up', end: 'orphaned' },
  ended: { close: 'ended', giveUp: 'orphaned', end: 'ended' },
  orphaned: { close: 'orphaned', giveUp: 'orphaned', end: 'orphaned' },
} as const;

/** Sends statements without waiting for the answers of earlier ones. After any error it takes no further statement. */
export class Connection {
  readonly #isNamed: boolean;
  readonly #started = new Set<StatementInFlight>();
  readonly #openedMs = performance.now();
  #readAtMs = 0;
  #endedMs = 0;
  #state: keyof typeof transitions = 'open';
  /** The slow resource that has this connection to itself; null: every statement may use it. Only `ResourceHealth` sets it. */
  reservedFor: ResourceHealth | null = null;
  #closing: NodeJS.Timeout | undefined;
  /** Is called once, when the socket has ended. */
  onEnd: () => void = () => undefined;

  private constructor(
    private readonly client: pg.Client,
    private readonly options: ConnectionOptions,
  ) {
    this.#isNamed = options.names.areUsed;
    client.on('error', () => {
      this.destroy();
      this.#handleEnd();
    });
    client.on('end', () => this.#handleEnd());
    const stream = getStream(client);
    stream.on('data', ({ length }: Buffer) => {
      this.#readAtMs = options.loop.ranMs;
      if (length < largeReadBytes) return;
      stream.pause();
      setImmediate(() => stream.resume());
    });
  }

  /** Rejects as `openClient` does. */
  static async open(url: string, options: ConnectionOptions, login = new Login(options.session)): Promise<Connection> {
    return new Connection(await openClient(url, { ...options, pipeline: true }, login), options);
  }

  get isUsable(): boolean {
    return this.#state === 'open';
  }

  get isGivenUp(): boolean {
    return this.#state === 'given up' || this.#state === 'orphaned';
  }

  get hasEnded(): boolean {
    return this.#state === 'ended' || this.#state === 'orphaned';
  }

  /** Process id that the server, or a pooler, has announced. */
  get pid(): number | null {
    return getAnnouncedPid(this.client);
  }

  /** Resource of the oldest statement in flight. */
  get resource(): string {
    const [oldest] = this.#started;
    return oldest?.resource ?? '';
  }

  get inFlight(): number {
    return this.#started.size;
  }

  /** Runs a statement that reads no view. */
  readRows(statement: Statement): Promise<readonly TextRow[]> {
    const rows: TextRow[] = [];
    const run = { statement, workspace: null, values: {} };
    return new Promise((resolve, reject) => {
      const onDone = (error: Error | null): void => (error ? reject(error) : resolve(rows));
      this.start(run, (row) => rows.push(row.getTexts()), onDone);
    });
  }

  /**
   * Passes each row to `onRow` as it arrives. Calls `onDone` once, when the statement is complete, as PostgreSQL reports, or has failed.
   * A statement whose backend sends nothing for `stallMsMax` fails as lost. Statements that start in one turn of the event loop are sent in
   * one write, because writes to sockets were half the cost of a single record under load; a statement that runs alone is sent at once.
   */
  start(
    run: Run,
    onRow: (row: Row) => void,
    onDone: (error: Error | null) => void,
    { stallMsMax, isAlone = false }: { readonly stallMsMax?: number | undefined; readonly isAlone?: boolean } = {},
  ): void {
    const move = (): void => {
      roundTrip.abandon();
      finish(new StatementMoved());
    };
    const started: StatementInFlight = {
      atMs: this.options.loop.ranMs,
      stallMsMax,
      resource: getResourceName(run.statement),
      move,
      isOverdue: false,
    };
    const finish = (error: Error | null): void => {
      if (!this.#started.delete(started)) return; // it was moved to another connection
      this.#endedMs = this.options.loop.ranMs;
      if (error || !this.isUsable) this.close();
      if (error instanceof StatementMixedUp) this.options.names.stopUse();
      if (error === null) onDone(null);
      else onDone(started.isOverdue ? makeStatementTimeout() : this.#addConnectionAge(error));
    };
    let roundTrip: RoundTrip;
    try {
      roundTrip = new RoundTrip(bindStatements(run, this.options.computeMac, onRow), this.#isNamed, finish);
    } catch (error) {
      return onDone(error as Error); // the statement lacks a value
    }
    this.#started.add(started);
    const stream = getStream(this.client);
    if (!isAlone && stream.writableCorked === 0) {
      stream.cork();
      setImmediate(() => stream.uncork());
    }
    this.client.query(roundTrip);
  }

  /** Ends the oldest statement with the connection; the others are sent elsewhere. */
  endOldest(): void {
    this.moveOthers();
    this.destroy();
  }

  /** Leaves the connection to its oldest statement; the others fail as StatementMoved, to be sent elsewhere. */
  moveOthers(): void {
    const [, ...others] = this.#started;
    for (const { move } of others) move?.();
  }

  /** Leases the connection for several round trips from `atMs` on. Closes it if `work` threw or called `close`. */
  async lease<T>(work: () => Promise<T>, resource: string, atMs: number): Promise<T> {
    const started: StatementInFlight = { atMs, isOverdue: false, resource };
    this.#started.add(started);
    const givenUp = new Promise<never>((_, reject) => {
      started.giveUp = () => reject(new ConnectionLost('the server has not answered in time'));
    });
    const working = work()
      .catch((error) => {
        this.#change('close');
        if (error instanceof StatementMixedUp) this.options.names.stopUse();
        throw this.#addConnectionAge(error as Error);
      })
      .finally(() => {
        this.#started.delete(started);
        if (!this.isUsable) this.close();
      });
    return Promise.race([working, givenUp]);
  }

  /** Sends a round trip of the work that leases the connection. */
  query(roundTrip: RoundTrip): void {
    if (this.isGivenUp) return roundTrip.handleError(new Error('the work was given up'), getWire(this.client));
    this.#readAtMs = this.options.loop.ranMs; // silence counts from now on
    this.client.query(roundTrip);
  }

  /** Ends the connection after `ms` if its statements have not ended. A CancelRequest could hit the next statement. */
  endIn(ms: number): void {
    for (const started of this.#started) started.endsMs = this.options.loop.ranMs + ms;
  }

  /**
   * Looks at the oldest statement, which is the one that the server runs. A statement that exceeds its limit, or whose backend is stalled,
   * ends with the connection; if it waited half of its time behind another statement, it fails as lost, so that it is repeated. Leased work
   * fails, but its connection lasts until the server answers, because the transaction does. Returns whether no byte came for `quietMs`.
   */
  checkProgress(quietMs: number, statementMsMax: number): boolean {
    const [oldest] = this.#started;
    if (oldest === undefined) return false;
    const { atMs, stallMsMax = Number.POSITIVE_INFINITY, endsMs = Number.POSITIVE_INFINITY, giveUp } = oldest;
    const nowMs = this.options.loop.ranMs;
    const silentMs = nowMs - Math.max(atMs, this.#readAtMs);
    const isLate = nowMs - atMs > statementMsMax;
    oldest.isOverdue = isLate && nowMs - Math.max(atMs, this.#endedMs) > statementMsMax / 2;
    if (giveUp === undefined && (isLate || silentMs > stallMsMax || nowMs > endsMs)) this.endOldest();
    if (giveUp !== undefined && isLate && !this.isGivenUp) {
      this.giveUp();
      giveUp();
    }
    return silentMs > quietMs;
  }

  /** Marks the connection: no client awaits its work any more, but the server may still run it. */
  giveUp(): void {
    this.#change('giveUp');
  }

  /** Ends the socket. PostgreSQL then stops its statement, because client_connection_check_interval makes it look at the socket. */
  destroy(): void {
    this.#change('close');
    getStream(this.client).destroy();
  }

  /** Takes no further statement, and ends when it is idle. */
  close(): void {
    this.#change('close');
    if (this.#started.size > 0 || this.#closing !== undefined) return;
    this.#closing = setTimeout(() => this.destroy(), closeMsMax).unref(); // a frozen server never closes its end
    this.client.end().catch(() => {});
  }

  /** Adds the time of the login to the error, for `isOfOlderConnection`. */
  #addConnectionAge(error: Error): Error {
    return Object.assign(error, { connectionOpenedMs: this.#openedMs });
  }

  #handleEnd(): void {
    if (this.hasEnded) return;
    this.#change('end');
    clearTimeout(this.#closing);
    this.onEnd();
  }

  #change(event: keyof (typeof transitions)['open']): void {
    this.#state = transitions[this.#state][event];
  }
}

/** Puts the guard first. It lasts for the transaction of the parts, so no later user of the connection inherits the workspace. */
function bindStatements(
  { statement, workspace, values, marks }: Run,
  computeMac: WorkspaceMac,
  onRow: (row: Row) => void,
): Binding[] {
  const rows = { statement, values: bindValues(statement, values), onRow };
  const guarded = workspace === null ? [] : [{ statement: getGuard(statement), values: [computeMac(workspace)] }];
  if (marks === undefined) return [...guarded, rows];
  const mark = { statement: markStatement, values: [], onRow: (row: Row) => marks.push(row.getTexts()) };
  return [...guarded, mark, rows, mark];
}

/** Returns an SQLSTATE or a socket's code; "connection" without a code. */
export function getErrorCode(error: unknown): string {
  return String((error as { code?: unknown }).code ?? 'connection');
}

/** Returns whether a connection ended that is older than the first failure, at `atMs`: a restart ends all of them, and is one failure. */
export function isOfOlderConnection(error: unknown, atMs: number): boolean {
  const { connectionOpenedMs = Number.POSITIVE_INFINITY } = error as { connectionOpenedMs?: number };
  return endsConnection(error) && connectionOpenedMs < atMs;
}

/** Makes the function that logs in. It reads the URL each time, because the password can change; null: no server may be used now. */
export function makeConnect(url: () => string | null, options: ConnectionOptions): Connect {
  const login = new Login(options.session);
  return async () => {
    const now = url();
    if (now === null) throw new ConnectionLost('no server may be used');
    return Connection.open(now, options, login);
  };
}
