import { chownSync, statSync } from 'node:fs';
import { readLines } from './processes.js';

/** The operating system account that servers run as. */
export interface Account {
  name: string;
  uid: number;
  gid: number;
}

/**
 * PostgreSQL refuses to run as root, so root lends it another account: the owner of `dir` when that exists and is not
 * root's (data of an earlier run), else postgres, else nobody. Undefined for a normal user, who runs servers as himself.
 */
export function serverAccount(dir?: string): Account | undefined {
  if (process.getuid?.() !== 0) return undefined;
  const owner = dir && statSync(dir, { throwIfNoEntry: false });
  if (owner && owner.uid !== 0) return { name: `${owner.uid}`, uid: owner.uid, gid: owner.gid };
  return fromPasswd('postgres') ?? fromPasswd('nobody') ?? { name: 'nobody', uid: 65534, gid: 65534 };
}

/** Hands a file or folder that root made to the account. */
export function give(path: string, account: Account | undefined): void {
  if (account) chownSync(path, account.uid, account.gid);
}

function fromPasswd(name: string): Account | undefined {
  const [, , uid, gid] =
    readLines('/etc/passwd')
      .find((line) => line.startsWith(`${name}:`))
      ?.split(':') ?? [];
  // macOS writes nobody as -2, which no system call takes.
  return uid && gid && Number(uid) > 0 ? { name, uid: Number(uid), gid: Number(gid) } : undefined;
}
