import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from '../paths.js';

/** The text of sql/check/NAME.sql. */
export function checkSql(name: string): string {
  return readFileSync(join(projectRoot, 'sql/check', `${name}.sql`), 'utf8');
}
