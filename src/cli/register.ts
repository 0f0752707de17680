import { asAdmin } from '../postgres/admin.js';
import { adminUrl } from './admin.js';
import { type Command, command, errLine, outLine, outTable, outText, UsageError } from './command.js';
import { findWorkspace, momentSql, rephrase } from './tokens.js';

interface ReadRow {
  readonly hour: string;
  readonly tokenId: string;
  readonly token: string | null;
  readonly resource: string;
  readonly fields: readonly string[];
  readonly requests: number;
  readonly records: number;
}

interface CopyRow {
  readonly tokenId: string;
  readonly token: string | null;
  readonly state: string;
  readonly resource: string;
  readonly lastPass: string | null;
  readonly lastChanges: string | null;
  readonly lastDigest: string | null;
}

const readsSql = `select ${momentSql('hour')} as hour, token_id as "tokenId", token, resource, string_to_array(fields, ',') as fields,
  requests::float8, records::float8 from gateway.list_reads($1, $2, $3)`;
const copiesSql = `select token_id as "tokenId", token, state, resource, ${momentSql('passed_at')} as "lastPass",
  ${momentSql('changed_at')} as "lastChanges", ${momentSql('compared_at')} as "lastDigest" from gateway.list_copies($1)`;

const text = { type: 'string' } as const;
const show = command(
  { workspace: text, from: text, to: text, json: { type: 'boolean' } },
  async ({ workspace, from, to, json }) => {
    if (workspace === undefined) throw new UsageError('register needs --workspace.');
    const [since, until] = [dayOf('--from', from) ?? '-infinity', dayOf('--to', to, 1) ?? 'infinity'];
    const { reads, copies } = await asAdmin(adminUrl(), async (client) => {
      const id = await findWorkspace(client, workspace);
      return {
        reads: (await client.query<ReadRow>(readsSql, [id, since, until])).rows,
        copies: (await client.query<CopyRow>(copiesSql, [id])).rows,
      };
    });
    if (json) outText(JSON.stringify({ reads, copies }, null, 2));
    else print(reads, copies);
  },
);

/** A day in UTC, or so many days after it; undefined for none. */
function dayOf(option: string, day: string | undefined, later = 0): string | undefined {
  if (day === undefined) return undefined;
  const date = new Date(`${day}T00:00:00Z`);
  if (!/^\d{4}-\d\d-\d\d$/.test(day) || Number.isNaN(date.getTime()) || !date.toISOString().startsWith(day))
    throw new UsageError(`${option} must be a date such as 2026-03-31, not "${day}".`);
  date.setUTCDate(date.getUTCDate() + later);
  return date.toISOString();
}

function print(reads: readonly ReadRow[], copies: readonly CopyRow[]): void {
  if (reads.length === 0) errLine('No personal data was read in this period.');
  else
    outTable([
      ['HOUR', 'TOKEN', 'NAME', 'RESOURCE', 'REQUESTS', 'RECORDS', 'PERSONAL FIELDS'],
      ...reads.map(({ hour, tokenId, token, resource, requests, records, fields }) => [
        hour,
        tokenId,
        token ?? '(deleted)',
        resource,
        String(requests),
        String(records),
        fields.join(' '),
      ]),
    ]);
  if (copies.length === 0) return errLine('No token holds a copy.');
  outLine('');
  outTable([
    ['COPY OF', 'TOKEN', 'NAME', 'STATE', 'LAST PASS', 'LAST CHANGES', 'LAST DIGEST'],
    ...copies.map(({ resource, tokenId, token, state, lastPass, lastChanges, lastDigest }) => [
      resource,
      tokenId,
      token ?? '(deleted)',
      state,
      lastPass ?? '-',
      lastChanges ?? '-',
      lastDigest ?? '-',
    ]),
  ]);
}

/** Prints the register of reads, and the copies. */
export const register: Command = async (args) => {
  await show(args).catch(rephrase);
  return 0;
};
