import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Certificates {
  readonly folder: string;
  readonly ca: string;
  readonly certificateFile: string;
  readonly keyFile: string;
}

export function makeCertificates(): Certificates {
  const folder = mkdtempSync(join(tmpdir(), 'certificates-'));
  const openssl = (command: string): unknown =>
    execFileSync('openssl', command.split(' '), { cwd: folder, stdio: ['ignore', 'ignore', 'pipe'] });
  const newKey = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes';
  writeFileSync(join(folder, 'names'), 'subjectAltName=IP:127.0.0.1\n');
  openssl(`req -x509 ${newKey} -keyout ca.key -out ca.pem -days 2 -subj /CN=test-authority`);
  openssl(`req ${newKey} -keyout server.key -out server.csr -subj /CN=test-server`);
  openssl('x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile names -out server.pem');
  const ca = readFileSync(join(folder, 'ca.pem'), 'utf8');
  return { folder, ca, certificateFile: join(folder, 'server.pem'), keyFile: join(folder, 'server.key') };
}
