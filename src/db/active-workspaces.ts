/** How long after its last statement a workspace counts as active. */
const activeMs = 1000;

/** The workspaces that any pool is serving. While there are several, each must leave connections for the others. */
export class ActiveWorkspaces {
  readonly #lastMs = new Map<string, number>();
  #prunedMs = 0;

  /** Notes that the workspace sends a statement now. */
  touch(workspace: string): void {
    const nowMs = performance.now();
    this.#lastMs.set(workspace, nowMs);
    if (nowMs - this.#prunedMs < activeMs / 4) return;
    this.#prunedMs = nowMs;
    for (const [other, lastMs] of this.#lastMs) if (nowMs - lastMs > activeMs) this.#lastMs.delete(other);
  }

  get areSeveral(): boolean {
    return this.#lastMs.size > 1;
  }
}
