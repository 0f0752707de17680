/** Part of the slots that are in use at most. */
const loadMax = 0.75;

/**
 * A set of 64-bit hashes, each as two unsigned 32-bit numbers, in a table with linear probing: a Set of JavaScript takes five times
 * the memory and ends at 16,777,216 items. The hash of zeros only, which has a chance of 2^-64, is never in it.
 */
export class HashSet {
  #high = new Uint32Array(1024);
  #low = new Uint32Array(1024);
  #size = 0;

  /** Returns false when the hash was in the set. */
  add(high: number, low: number): boolean {
    const slot = this.#slotOf(high, low);
    if (!this.#isFree(slot)) return false;
    this.#high[slot] = high;
    this.#low[slot] = low;
    if (++this.#size > this.#low.length * loadMax) this.#grow();
    return true;
  }

  /** Returns false when the hash was not in the set. */
  delete(high: number, low: number): boolean {
    let gap = this.#slotOf(high, low);
    if (this.#isFree(gap)) return false;
    const mask = this.#low.length - 1;
    // Hashes behind the gap move into it unless they would come before the slot in which their search begins.
    for (let slot = (gap + 1) & mask; !this.#isFree(slot); slot = (slot + 1) & mask) {
      const begin = (this.#low[slot] as number) & mask;
      if (((slot - begin) & mask) < ((slot - gap) & mask)) continue;
      this.#high[gap] = this.#high[slot] as number;
      this.#low[gap] = this.#low[slot] as number;
      gap = slot;
    }
    this.#high[gap] = 0;
    this.#low[gap] = 0;
    this.#size--;
    return true;
  }

  #isFree(slot: number): boolean {
    return this.#low[slot] === 0 && this.#high[slot] === 0;
  }

  /** The slot of the hash, or the free one where it would be. */
  #slotOf(high: number, low: number): number {
    const mask = this.#low.length - 1;
    let slot = low & mask;
    while (!this.#isFree(slot) && (this.#low[slot] !== low || this.#high[slot] !== high)) slot = (slot + 1) & mask;
    return slot;
  }

  #grow(): void {
    const [high, low] = [this.#high, this.#low];
    this.#high = new Uint32Array(high.length * 2);
    this.#low = new Uint32Array(low.length * 2);
    this.#size = 0;
    for (let i = 0; i < low.length; i++)
      if (low[i] !== 0 || high[i] !== 0) this.add(high[i] as number, low[i] as number);
  }
}
