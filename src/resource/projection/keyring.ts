import { createSecretKey, type KeyObject } from 'node:crypto';
import { listChildren } from './json-scan.js';

/** 256-bit AES keys are KeyObjects, which no log line can print. */
export interface Keyring {
  readonly ids: readonly string[];
  get(id: string): KeyObject | undefined;
}

const keyBytes = 32;
/** A colon ends the key id in a stored value; 40 is too short for a base64 key in its place. */
const idPattern = /^[A-Za-z0-9_.-]{1,40}$/;

/** Reads key ids and base64 of 32 bytes. Throws one Error with every fault, by position and well-formed id, but without any key. */
export function parseKeyring(json: string): Keyring {
  const keys = new Map<string, KeyObject>();
  const faults: string[] = [];
  for (const [index, [id, value]] of parseEntries(json).entries()) {
    const wellFormedId = idPattern.test(id);
    const key = makeKey(value);
    const entry = `entry ${index + 1}${wellFormedId ? ` ("${id}")` : ''}`;
    if (wellFormedId && keys.has(id)) faults.push(`${entry}: the id stands there twice`);
    if (!wellFormedId) faults.push(`${entry}: the key id must be 1 to 40 letters, digits, "_", "." or "-"`);
    if (key === undefined) faults.push(`${entry}: the key must be the base64 of exactly ${keyBytes} bytes`);
    if (wellFormedId && key !== undefined) keys.set(id, key);
  }
  if (faults.length > 0) throw new Error(`The keyring is not usable: ${faults.join('; ')}.`);
  return { ids: [...keys.keys()], get: (id) => keys.get(id) };
}

function parseEntries(json: string): [string, unknown][] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(json);
  } catch {
    throw new Error('The keyring is not usable: it is not JSON.');
  }
  if (typeof parsed !== 'object' || parsed === null || Array.isArray(parsed))
    throw new Error('The keyring is not usable: it is not a JSON object of key id to key.');
  return listChildren(json.trim()).map(([id, value]) => [id, JSON.parse(value)]); // JSON.parse would take the last of two keys with one id
}

function makeKey(value: unknown): KeyObject | undefined {
  if (typeof value !== 'string') return undefined;
  const bytes = Buffer.from(value, 'base64');
  // Buffer.from skips foreign characters: only a value that encodes back to itself was base64 throughout.
  if (bytes.length !== keyBytes || bytes.toString('base64') !== value) return undefined;
  return createSecretKey(bytes);
}
