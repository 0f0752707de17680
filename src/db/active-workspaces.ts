/** How long a workspace that asked for something counts as one who is served. */
const servedMs = 1000;

/** Whether several workspaces are being served, over all lanes: only then must one leave room for others. */
export class ActiveWorkspaces {
  readonly #lastMs = new Map<string, number>();
  #prunedMs = 0;

  /** A workspace asks for something. */
  touch(whose: string): void {
    const nowMs = performance.now();
    this.#lastMs.set(whose, nowMs);
    if (nowMs - this.#prunedMs < servedMs / 4) return;
    this.#prunedMs = nowMs;
    for (const [other, lastMs] of this.#lastMs) if (nowMs - lastMs > servedMs) this.#lastMs.delete(other);
  }

  get areSeveral(): boolean {
    return this.#lastMs.size > 1;
  }
}
