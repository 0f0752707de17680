import type { FieldErrorCode } from '../base/errors.js';
import type { Help } from '../base/events.js';

// The table `sqlStates` says what each error of PostgreSQL means for a retry, for the operator and for the client of a write.

/** A 'retry' can succeed elsewhere or later; 'unfit' lacks an object or a privilege; 'permanent' needs a person's remedy. */
export type DatabaseErrorKind = 'retry' | 'timeout' | 'unfit' | 'permanent';

export interface Refusal {
  readonly code: FieldErrorCode;
  readonly detail: string;
  /** Types of the fields that the error can be about, if no column is known. */
  readonly types: readonly string[] | 'all';
}

interface SqlStateRow {
  readonly helps: Help;
  /** An object or a privilege is missing, as during a release of the app. */
  readonly isLacking?: true;
  /** The server closes the connection. */
  readonly endsConnection?: true;
  /** Text for the operator if the login or the probe of a server fails. */
  readonly reason?: string;
  /** Fault of the values of a write; absent: no value is the reason. */
  readonly refusal?: Refusal;
  /** Fault and remedy for the operator; absent: a bug of the gateway, or a passing fault. */
  readonly correction?: string | undefined;
  /** Remedy if a function of the app met the error. */
  readonly correctionOfApp?: string | undefined;
}

const repeat = { helps: 'repeat' } as const;
const ended = { helps: 'repeat', endsConnection: true } as const;
const newConnection = { helps: 'new connection' } as const;
const otherServer = { helps: 'other server' } as const;
const makeUnfit = (correction: string): SqlStateRow => ({ helps: 'ask the operator', correction });
const makeLack = (correction: string, correctionOfApp: string): SqlStateRow => {
  return { helps: 'ask the operator', isLacking: true, correction, correctionOfApp };
};
const missing = makeLack(
  'A view, table, column or function is missing: run `migrate` or `views --create`, then `check`.',
  'A function of the app misses a table, column or function: it relies on the search_path of its caller. Give it its own by alter function … set search_path = ….',
);
const constraint =
  'A constraint refuses a record that no value of the client makes wrong: correct the write view or the constraint.';
const makeRefusal = (code: FieldErrorCode, detail: string, types: Refusal['types'] = 'all', correction?: string) => {
  return { helps: 'ask the client', refusal: { code, detail, types }, correction } as const satisfies SqlStateRow;
};

const byRule = 'a rule of the database does not allow it.';
const ruleOfApp = makeRefusal('invalid', byRule, 'all', "A function of the app rejects it: see PostgreSQL's log.");

/** Tokens whose rows are hidden would look unknown. */
export const hiddenRowsRemedy =
  'Create a policy there whose condition is true for gateway_owner, bind restrictive policies to the roles of the app, or give the view to a role that may read every row.';

/** SQLSTATEs that other files compare. */
export const queryCanceled = '57014';
export const lockNotAvailable = '55P03';
/** The MAC of the workspace has a key that the database does not have, or in another hour. */
export const wallRefusal = 'WG006';
export const noPreparedStatement = '26000';
export const protocolViolation = '08P01';
export const undefinedObject = '42704';
export const undefinedTable = '42P01';
export const internalError = 'XX000'; // "could not open relation with OID": a catalog that changes while it is read
export const insufficientPrivilege = '42501';

/** A key is an SQLSTATE (PostgreSQL Appendix A) with its routine, an SQLSTATE, or its class. An unlisted one is a bug. */
const sqlStates: Readonly<Record<string, SqlStateRow>> = {
  '08': ended, // connection exceptions
  '08P01': {
    ...ended,
    reason:
      'the pooler cannot log in, or has refused the login: compare its passwords, for example in userlist.txt, its list of databases and pg_hba.conf of the server',
  },
  '28': otherServer, // a refused login: its password is being changed, or pg_hba.conf of this server refuses it
  '28000': { ...otherServer, reason: 'the login is refused' },
  '28P01': { ...otherServer, reason: 'the password is wrong' },
  '3D000': { ...otherServer, reason: 'there is no such database' },
  '40': repeat, // serialization failure: on a standby, a conflict with recovery
  '53': otherServer, // insufficient resources: too many connections, disk full
  '53300': {
    ...otherServer,
    reason: 'no connection is free: raise the CONNECTION LIMIT of the role or database, or max_connections',
  },
  [queryCanceled]: { helps: 'ask the client' }, // statement_timeout
  '57': ended, // operator intervention: shutdown, terminated, starting up
  '57P03': { ...ended, reason: 'it is starting up or shutting down' },
  '58': otherServer, // system errors: I/O
  XX: otherServer, // internal errors, such as a cache lookup that met DDL
  '25006': otherServer, // read-only: the primary has become a standby
  '25P03': ended, // idle_in_transaction_session_timeout: the gateway was too busy to go on
  '26000': newConnection, // a missing prepared statement: PgBouncer chose another server connection
  '42P05': newConnection, // an existing prepared statement: PgBouncer chose another server connection
  '55006': otherServer,
  [lockNotAvailable]: otherServer, // lock_timeout
  '0A000 RevalidateCachedQuery': newConnection, // "cached plan must not change result type": DDL under a prepared statement
  '0A000 get_relation_info': makeUnfit(
    'A table below the view is UNLOGGED, so replicas do not have its rows: ALTER TABLE … SET LOGGED.',
  ),
  '0A000': makeUnfit(
    'The write view computes a column that clients write: show the plain column, or make the field read-only.',
  ),
  '428C9': makeUnfit(
    'A column that the gateway writes is GENERATED ALWAYS: make it BY DEFAULT, or set "ids": "database".',
  ),
  '55000': makeUnfit(
    'The write view is not updatable: its FROM must be a single table, without DISTINCT, GROUP BY or LIMIT.',
  ),
  '44000': makeUnfit(
    'The WITH CHECK OPTION of the write view refuses the row: correct its WHERE, or the trigger that moves the row out of the view.',
  ),
  '42501': makeLack(
    'A role lacks a privilege: run `migrate` for objects of the gateway, grant objects of the app, then `check`.',
    'A function of the app, such as a trigger function, writes with the rights of the gateway: make it SECURITY DEFINER and set its search_path.',
  ),
  '42501 ExecWithCheckOptions': makeRefusal('invalid', byRule), // WITH CHECK of a policy for row-level security
  '42P01': missing,
  '42703': missing,
  '42883': missing,
  '3F000': missing,
  '42704': makeLack(
    'The views do not fit the definitions of the resources: run `check`.',
    'A function of the app reads a parameter that only the app sets: read it by current_setting(name, true), and handle NULL in the function.',
  ),
  [wallRefusal]: otherServer, // the wall refuses the MAC: another replica or another gateway can have the new key already
  WG007: { ...makeUnfit(`Row security hides rows from the look-up of tokens. ${hiddenRowsRemedy}`), isLacking: true },
  '42': makeUnfit('The views do not fit the definitions of the resources: run `check`.'),
  '2201G': makeUnfit(
    'A BEFORE trigger of the app returns NULL, so the record was not written: let it raise an exception instead, or return the row.',
  ), // only write-statements has such an expression
  '22001': makeRefusal('too_long', 'the text is longer than its column.', ['text']),
  '22003': makeRefusal('out_of_range', 'the number is too large for its column.', ['integer', 'number', 'bigint']),
  '22008': makeRefusal('out_of_range', 'PostgreSQL has no such date.', ['date']),
  '22P02': makeRefusal('invalid', 'it is not an allowed value.', ['enum']),
  '22': makeRefusal('invalid', byRule), // data exceptions
  '23502': makeRefusal(
    'not_nullable',
    'its column needs a value.',
    [],
    'A column that the gateway leaves NULL is NOT NULL: give it a default, or make its field required.',
  ),
  '23503': makeRefusal('unknown_reference', 'there is no record that it refers to.', 'all', constraint),
  '23505': makeRefusal('taken', 'another record has it already.', 'all', constraint), // unique index
  '23P01': makeRefusal('taken', 'another record has it already.', 'all', constraint), // exclusion constraint
  '23514': makeRefusal('invalid', byRule, 'all', constraint), // CHECK, also of a domain
  '23': makeUnfit(constraint),
  '54000': makeRefusal('too_long', 'the text is too long for an index.', ['text']),
  P0: ruleOfApp, // errors of PL/pgSQL
};

/** PostgreSQL's own SQLSTATEs have these classes; the app raises any other. */
const ownClasses = /^(0[0-3089ABFLPZ]|10|2[0-8BDF]|34|3[89BDF]|4[024]|5[34578]|72|F0|HV|P0|XX)$/;

export const unfitSqlStates: readonly string[] = Object.entries(sqlStates)
  .filter(([key, { correction }]) => /^\w{5}$/.test(key) && correction !== undefined)
  .map(([key]) => key);

/** A server or its network failed: another try can succeed. An error of another class is a bug. */
export class ServerFault extends Error {
  readonly helps: Help = 'repeat';
}

/** The message has no address and no credentials. */
export class ConnectionLost extends ServerFault {}

/** An administrator, or a limit that the gateway does not know, cancelled the statement before its time limit. */
export class StatementEnded extends ServerFault {
  override readonly helps = 'other server';
  readonly code = queryCanceled;
}

export function getDatabaseErrorKind(error: unknown): DatabaseErrorKind {
  const row = findSqlStateRow(error);
  if (row === sqlStates[queryCanceled]) return 'timeout';
  if (row?.isLacking) return isOfApp(error) ? 'permanent' : 'unfit'; // no look at the views finds a function of the app
  return /^ask/.test(getHelp(error) ?? 'ask the client') ? 'permanent' : 'retry';
}

/** Returns undefined for a bug of the gateway. */
export function getHelp(error: unknown): Help | undefined {
  return error instanceof ServerFault ? error.helps : findSqlStateRow(error)?.helps;
}

/** Returns whether the connection has ended, or ends now. */
export function endsConnection(error: unknown): boolean {
  return error instanceof ServerFault ? error.helps === 'repeat' : findSqlStateRow(error)?.endsConnection === true;
}

/** Returns how the app's database refuses the values of a write; undefined for all other errors. */
export function getRefusal(error: unknown): Refusal | undefined {
  return findSqlStateRow(error)?.refusal;
}

/** Names fault and remedy for the operator; undefined for a bug of the gateway. */
export function getCorrection(error: unknown): string | undefined {
  const row = findSqlStateRow(error);
  if (getDatabaseErrorKind(error) === 'retry' || getDatabaseErrorKind(error) === 'timeout' || !isOfApp(error))
    return row?.correction;
  return row?.correctionOfApp ?? ruleOfApp.correction;
}

type Origin = { readonly file?: string; readonly routine?: string; readonly where?: string };

function findSqlStateRow(error: unknown): SqlStateRow | undefined {
  const state = getSqlState(error);
  if (state === undefined) return undefined;
  const stateClass = state.slice(0, 2);
  const { file = '', routine = '' } = error as Origin;
  const isRaised = routine === 'exec_stmt_raise' || /^(plpy_|plperl|pltcl|plv8)/.test(file);
  if (isOfApp(error) && (isRaised || stateClass === '23')) return ruleOfApp;
  const row = sqlStates[`${state} ${routine}`] ?? sqlStates[state] ?? sqlStates[stateClass];
  return row ?? (ownClasses.test(stateClass) ? undefined : ruleOfApp);
}

/** Returns whether a function of the app raised the error: PostgreSQL names the innermost function first, in any locale. */
export function isOfApp(error: unknown): boolean {
  const [innermost] = /PL\/\w.*/.exec((error as Origin).where ?? '') ?? [];
  return innermost !== undefined && !/\bgateway\.\w+\(/.test(innermost);
}

/** Returns whether a prepared statement was missing, or there already. Leaves out functions of the app, which prepare others. */
export function isNameMixUp(error: unknown): boolean {
  return getHelp(error) === 'new connection' && !/^0A/.test(getSqlState(error) ?? '') && !isOfApp(error);
}

/** Only PostgreSQL's errors have a severity (PostgreSQL 55.8): EPIPE and E2BIG have five characters as well. */
export function getSqlState(error: unknown): string | undefined {
  const { code, severity } = error as { code?: unknown; severity?: unknown };
  return typeof code === 'string' && typeof severity === 'string' ? code : undefined;
}

const objectForm = /\b(?:relation|table|view|column|function|schema|sequence) (?:"[^"]+"|[\w.]+)/;

/** Returns text such as "column klanten.naam". Reads only PostgreSQL's own messages, because an app's message can quote values. */
export function findNameIn(error: unknown): string | null {
  const { schema, table, column, constraint, routine = '', message } = error as Record<string, string | undefined>;
  const names = [schema, table, column].filter((part) => part !== undefined).join('.');
  if (names !== '' || constraint !== undefined) return [names, constraint].filter(Boolean).join(' ');
  if (!/^42(P01|703|883|501)$|^3F000$/.test(getSqlState(error) ?? '') || routine.startsWith('exec_stmt')) return null;
  return objectForm.exec(message ?? '')?.[0] ?? null;
}

/** Returns why something failed, in words that quote no values. */
export function getReason(error: Error): string {
  const state = getSqlState(error);
  if (state === undefined) return error.message;
  const words = findSqlStateRow(error)?.reason;
  return words === undefined ? `PostgreSQL error ${state}` : `PostgreSQL error ${state}: ${words}`;
}
