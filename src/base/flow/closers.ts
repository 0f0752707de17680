/** Closes everything that was opened, once, in reverse order, even if several callers ask for it. */
export class Closers {
  readonly #closers: (() => unknown)[] = [];
  #end: Promise<void> | undefined;

  add(close: () => unknown): void {
    this.#closers.push(close);
  }

  /** Rejects with all errors of the closers. */
  terminate(): Promise<void> {
    this.#end ??= this.#close();
    return this.#end;
  }

  async #close(): Promise<void> {
    const errors: Error[] = [];
    for (const close of this.#closers.splice(0).reverse())
      try {
        await close();
      } catch (error) {
        errors.push(error as Error);
      }
    if (errors.length > 0) throw new AggregateError(errors, `The end failed: ${errors.map(String).join('; ')}`);
  }
}
