import type { WorkspaceId } from '../db/statement.js';

/** Who asks, and for whom. */
export interface Caller {
  readonly tokenId: string;
  readonly workspace: WorkspaceId;
}
