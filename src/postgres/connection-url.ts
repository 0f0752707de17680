import { accessSync, constants } from 'node:fs';
import { findNearestName } from '../base/nearest-name.js';

/** pg accepts any text, and would look for a host named "base". */
function isConnectionUrl(url: string): boolean {
  return /^postgres(ql)?:/.test(url) && URL.canParse(url);
}

/** Writes "host:port/database" for messages, without user, password and parameters. */
export function getServerName(url: string): string {
  if (!isConnectionUrl(url)) return 'not a connection URL';
  const { hostname, port, pathname, searchParams } = new URL(url);
  return `${hostname || searchParams.get('host') || 'localhost'}:${port || '5432'}${pathname}`;
}

/** Reading the settings takes 3 ms, so logins that begin within this time read them once. */
const sharedMs = 20;

/** Reads the setting again, so that a rotated password needs no restart; keeps the last URL while it cannot be read. */
export function makeUrlReader(first: string, readUrls: () => readonly string[]): () => string {
  let url = first;
  let readMs = performance.now();
  return () => {
    if (performance.now() - readMs < sharedMs) return url;
    readMs = performance.now();
    try {
      url = readUrls().find((each) => getServerName(each) === getServerName(url)) ?? url;
    } catch {}
    return url;
  };
}

const tlsFiles = ['sslrootcert', 'sslcert', 'sslkey'] as const;
const tlsParameters = ['sslmode', ...tlsFiles];

/** Returns the end of a sentence, or null; quotes no value. `check` warns of a URL without sslmode. */
export function findUrlFault(url: string): string | null {
  if (!/^postgres(ql)?:/.test(url)) return 'must be a connection URL, postgres://….';
  if (!URL.canParse(url) || endsBeforeLogin(new URL(url)))
    return `must be a connection URL, postgres://USER:PASSWORD@HOST/DATABASE; ${percentEncoding}`;
  const { searchParams } = new URL(url);
  for (const name of searchParams.keys()) {
    const meant = findNearestName(name.toLowerCase().replace(/[-_]/g, ''), tlsParameters, () => 1);
    if (meant !== undefined && meant !== name) return `has a parameter ${name}: did you mean ${meant}?`;
  }
  for (const name of tlsFiles) {
    const code = findReadFault(searchParams.get(name));
    if (code !== null) return `names a file in ${name} that cannot be read: ${code}.`;
  }
  return null;
}

export const percentEncoding =
  'write special characters of user and password percent-encoded, such as %23 for #, %2F for / and %2C for a comma.';

/** A "#", "/" or "?" in the password moves the "@" into another part of the URL. */
export function endsBeforeLogin({ username, password, pathname, searchParams, hash }: URL): boolean {
  const isInParameter = [...searchParams.keys()].some((name) => name.includes('@'));
  return hash !== '' || pathname.includes('@') || isInParameter || ![username, password].every(isDecodable);
}

/** pg encodes a lone percent sign itself. */
function isDecodable(text: string): boolean {
  try {
    decodeURIComponent(text);
    return true;
  } catch {
    return /%(?![a-f\d]{2})/i.test(text);
  }
}

function findReadFault(path: string | null): string | null {
  try {
    if (path) accessSync(path, constants.R_OK);
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code as string;
  }
}
