/** How long after its last use a key counts as active. */
const activeMs = 1000;

/** The keys, such as workspaces, that were served last. While there are several, each must leave room for the others. */
export class ActiveKeys {
  readonly #lastMs = new Map<string, number>();
  #prunedMs = 0;

  /** Notes that the key is served now. */
  touch(key: string): void {
    const nowMs = performance.now();
    this.#lastMs.set(key, nowMs);
    if (nowMs - this.#prunedMs < activeMs / 4) return;
    this.#prunedMs = nowMs;
    for (const [other, lastMs] of this.#lastMs) if (nowMs - lastMs > activeMs) this.#lastMs.delete(other);
  }

  get areSeveral(): boolean {
    return this.#lastMs.size > 1;
  }
}
