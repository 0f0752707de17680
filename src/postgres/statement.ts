import { hash } from 'node:crypto';

/** A prepared statement; `prepared` makes it. */
export interface Statement {
  /** Its purpose, for people; several statements can have the same. */
  readonly label: string;
  /** Ends with a digest of all that its plan depends on, so that no two texts share a name. */
  readonly name: string;
  readonly text: string;
  /** The names of the values at $1, $2, …: each statement takes the values that it needs. */
  readonly parameters: readonly string[];
  /** Reads the rows of its index entries in the order of the table, each page of it once: for statements that examine many rows and return few. */
  readonly inTableOrder?: true;
}

/** PostgreSQL keeps 63 bytes of a name; of these a digest has 22, which are 132 bits. */
const labelMax = 40;
export const digestMax = 22;

/** The resource of a statement, which its label begins with; else its purpose. */
export const resourceOf = ({ label }: Pick<Statement, 'label'>): string => label.split('.')[0] as string;

export function prepared(
  label: string,
  text: string,
  parameters: readonly string[] = [],
  inTableOrder?: true,
): Statement {
  const digest = hash('sha256', JSON.stringify([text, inTableOrder]), 'base64url').slice(0, digestMax);
  const name = `${label.replace(/[^\x21-\x7e]/g, '?').slice(0, labelMax)}_${digest}`;
  return { label, name, text, parameters, ...(inTableOrder && { inTableOrder }) };
}

/** Values by parameter name, in PostgreSQL's text form; a Buffer is bound as bytea. */
export type Values = Readonly<Record<string, string | number | Buffer | null>>;

declare const authenticated: unique symbol;
/** A workspace id of a valid token. Only http/tokens makes this type, so that no other id can reach a statement. */
export type WorkspaceId = string & { readonly [authenticated]: true };

/** The token of a request, and the workspace to which the token is bound. */
export interface Caller {
  readonly tokenId: string;
  readonly workspace: WorkspaceId;
}
