/**
 * A prepared statement: built once, at start-up. `parameters` names what stands at $1, $2, … so that values are
 * bound by name and a shape can leave out what it does not need.
 */
export interface Statement {
  /** Unique name; PostgreSQL keeps at most 63 bytes of it. */
  readonly name: string;
  readonly text: string;
  readonly parameters: readonly string[];
}

/** Values by parameter name, in PostgreSQL's text form; a Buffer is bound as bytea. */
export type Values = Readonly<Record<string, string | number | Buffer | null>>;

declare const authenticated: unique symbol;
/** A workspace id that came out of a valid token. Only http/tokens makes one, so no other can reach a statement. */
export type WorkspaceId = string & { readonly [authenticated]: true };

/** The token that sent a request, and the workspace it is bound to. */
export interface Caller {
  readonly tokenId: string;
  readonly workspace: WorkspaceId;
}
