import type { KeyObject } from 'node:crypto';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

/** The cell that a codec module decodes. Ids are texts. */
export interface CellContext {
  readonly workspace: string;
  readonly table: string;
  readonly column: string;
  readonly id: string;
  /** From the prefix, the column or the definition, as the codec says; null when it names no key. */
  readonly keyId: string | null;
  /** The keys of DATA_KEYS. */
  readonly keys: { get(id: string): KeyObject | undefined };
}

/** The default export of a codec module: returns the text of a cell, or throws. Bytes, or the text where the encoding is text. */
export type DecodeFunction = (stored: Buffer | string, context: CellContext) => string;

const loadMaxMs = 10_000;

/**
 * Imports the ES module at `path` (relative to the working directory) and returns its default export; undefined when the path
 * is empty. Throws an Error that says what is wrong with the module.
 */
export async function loadCodecModule(path: string): Promise<DecodeFunction | undefined> {
  if (path === '') return undefined;
  const decode = await defaultExportOf(resolve(path));
  if (typeof decode !== 'function') throw new Error(`${path} has no function as its default export`);
  if (decode.constructor.name !== 'Function')
    throw new Error(`the function of ${path} is asynchronous or a generator: it must return the text itself`);
  return decode as DecodeFunction;
}

async function defaultExportOf(path: string): Promise<unknown> {
  const late = new AbortController();
  const timeout = new Promise<never>((_, reject) => {
    const timer = setTimeout(() => reject(new Error(`${path} was not loaded within ${loadMaxMs / 1000} s`)), loadMaxMs);
    late.signal.addEventListener('abort', () => clearTimeout(timer));
  });
  try {
    const loaded: { readonly default?: unknown } = await Promise.race([import(pathToFileURL(path).href), timeout]);
    return loaded.default;
  } catch (error) {
    throw new Error(`${path} cannot be loaded: ${(error as Error).message}`);
  } finally {
    late.abort();
  }
}
