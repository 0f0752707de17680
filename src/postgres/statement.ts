import { hash } from 'node:crypto';
import { StringDecoder } from 'node:string_decoder';

/** `prepareSql` makes every statement, so that its name follows from its text. */
export interface Statement {
  /** Name for people; several statements can share it. */
  readonly label: string;
  /** Ends with a digest of all that the plan depends on. */
  readonly name: string;
  readonly text: string;
  /** Names of $1, $2, … */
  readonly parameters: readonly string[];
  /** Reads in the order of the table, each page once: for statements that examine many rows and return few. */
  readonly inTableOrder?: true;
}

/** PostgreSQL keeps 63 bytes of a name: 40 of the label, an underscore, and 22 of the digest, which are 132 bits. */
const labelMax = 40;
export const digestMax = 22;

/** Returns the first part of the label: a resource, or a purpose such as "sync_keys", which has an underscore that no resource has. */
export const getResourceName = ({ label }: Pick<Statement, 'label'>): string => label.split('.')[0] as string;

export function prepareSql(
  label: string,
  text: string,
  parameters: readonly string[] = [],
  inTableOrder?: true,
): Statement {
  const digest = hash('sha256', JSON.stringify([text, inTableOrder]), 'base64url').slice(0, digestMax);
  const name = `${label.replace(/[^\x21-\x7e]/g, '?').slice(0, labelMax)}_${digest}`;
  return { label, name, text, parameters, ...(inTableOrder && { inTableOrder }) };
}

/** Shortens a name that PostgreSQL would cut, at 63 bytes: its end becomes a digest of the whole. */
export function shortenName(name: string, bytesMax = 63, digits = 6): string {
  if (Buffer.byteLength(name) <= bytesMax) return name;
  const digest = hash('sha256', name).slice(0, digits);
  const start = Buffer.from(name).subarray(0, bytesMax - digits - 1);
  return `${new StringDecoder('utf8').write(start)}_${digest}`; // leaves out a letter that was cut in two
}

/** Values are in PostgreSQL's text form; a Buffer is bound as bytea. */
export type Values = Readonly<Record<string, string | number | Buffer | null>>;

declare const authenticated: unique symbol;
/** Only token-look-up makes this type for a request, and checks and exports of the operator, so that no other id reaches a statement. */
export type WorkspaceId = string & { readonly [authenticated]: true };

export interface Caller {
  readonly tokenId: string;
  readonly workspace: WorkspaceId;
}
