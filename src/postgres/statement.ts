/**
 * A prepared statement. `parameters` names the values at $1, $2, …, so that each statement takes the values that it needs by
 * name.
 */
export interface Statement {
  /** Unique name; PostgreSQL keeps at most 63 bytes of it. */
  readonly name: string;
  readonly text: string;
  readonly parameters: readonly string[];
  /** Reads the rows of its index entries in the order of the table, each page of it once: for statements that examine many rows and return few. */
  readonly inTableOrder?: true;
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
