import { createHmac, randomBytes } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Account, giveTo } from './binaries.js';

const superuser = 'postgres';

/** Holds the superuser's password, for initdb and for the next start of a kept folder. */
export const getPasswordFile = (dir: string): string => join(dir, 'password');

/** The superuser's password of the cluster in the folder; a new, random one, in a file of mode 0600, if there is none. */
export function readSuperuserPassword(dir: string, account: Account | undefined): string {
  const file = getPasswordFile(dir);
  if (existsSync(file)) return readFileSync(file, 'utf8');
  if (existsSync(join(dir, 'primary'))) throw new Error(`${dir} was made by an earlier version: name another folder.`);
  writeFileSync(file, randomBytes(24).toString('base64url'), { mode: 0o600 });
  giveTo(file, account);
  return readFileSync(file, 'utf8');
}

/** A role's password, derived from the superuser's: a cluster has one secret to keep. */
export function passwordOf(role: string, superuserPassword: string): string {
  if (role === superuser) return superuserPassword;
  return createHmac('sha256', superuserPassword).update(role).digest('base64url');
}

/** A connection URL of the superuser, changed to another role or database of the same cluster. */
export function urlAs(superuserUrl: string, role: string, database?: string): string {
  const url = new URL(superuserUrl);
  url.password = passwordOf(role, url.password);
  url.username = role;
  if (database !== undefined) url.pathname = `/${database}`;
  return url.href;
}
