/** Leaves out lru-cache's `max`, which allocates all entries at once: 2.7 MB for seven caches of 10,000. */
export function limitEntries(entries: number): { maxSize: number; sizeCalculation: () => number } {
  return { maxSize: entries, sizeCalculation: () => 1 };
}
