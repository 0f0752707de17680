import type { Statement, Values, WorkspaceId } from '../statement.js';
import type { BoundValue, Wire } from './wire.js';

/** Sets the workspace until the end of the transaction: without it the tenant wall shows no row and takes none. */
export const guard: Statement = {
  name: 'workspace-guard',
  text: "select set_config('gateway.workspace_id', $1, true)",
  parameters: ['workspace'],
};

/** Without the other ways to a row the planner uses bitmap scans. Generic plans keep to the settings of their first run. */
const guardInTableOrder: Statement = {
  name: 'workspace-guard-in-table-order',
  text: `${guard.text}, set_config('enable_indexscan', 'off', true), set_config('enable_seqscan', 'off', true)`,
  parameters: guard.parameters,
};

/** The guard of a statement. */
export const guardOf = ({ inTableOrder }: Statement): Statement => (inTableOrder ? guardInTableOrder : guard);

/** Writes Parse, unless the connection has the statement by its name already, then Bind and Execute. */
export function addStatement(
  wire: Wire,
  statement: Pick<Statement, 'name' | 'text'>,
  values: readonly BoundValue[],
  isNamed: boolean,
): void {
  const { text } = statement;
  const name = isNamed ? statement.name : '';
  const isPrepared = name !== '' && (wire.parsedStatements[name] ?? wire.submittedNamedStatements[name]) !== undefined;
  if (!isPrepared) wire.parse({ name, text });
  if (!isPrepared && isNamed) wire.submittedNamedStatements[name] = text;
  wire.bind({ statement: name, values });
  wire.execute({});
}

/** Sends the messages that `add` writes, and Sync, in one write. */
export function sendTogether(wire: Wire, add: () => void): void {
  wire.stream.cork();
  try {
    add();
    wire.sync();
  } finally {
    wire.stream.uncork();
  }
}

/** The values in the order of the statement's parameters. Throws when one is missing. */
export function boundValues(
  { name, parameters }: Statement,
  workspace: WorkspaceId | null,
  values: Values,
): BoundValue[] {
  return parameters.map((parameter) => {
    if (parameter === 'workspace') return workspace;
    const value = values[parameter];
    if (value === undefined) throw new Error(`statement ${name} lacks a value for ${parameter}`);
    return typeof value === 'number' ? String(value) : value;
  });
}
