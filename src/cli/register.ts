import { runAsAdmin } from '../postgres/admin.js';
import type { Command } from './command.js';
import { makeCommand, makeOptions, printError, printLine, printTable, printText, UsageError } from './command.js';
import { readAdminUrl } from './required-settings.js';
import { composeMomentSql, findWorkspace, rephrase, requireDay } from './tokens.js';

type ReportRow = Readonly<Record<string, string | number | readonly string[] | null>>;

const readsSql = `select ${composeMomentSql('hour')} as hour, token_id as "tokenId", token, resource, requests::float8, records::float8,
  string_to_array(fields, ',') as fields from gateway.list_reads($1, $2::date::timestamp at time zone 'UTC', ($3::date + 1)::timestamp at time zone 'UTC')`;
const copiesSql = `select resource, token_id as "tokenId", token, state, ${composeMomentSql('passed_at')} as "lastPass",
  ${composeMomentSql('changed_at')} as "lastChanges", ${composeMomentSql('compared_at')} as "lastDigest" from gateway.list_copies($1)`;

const readHeadings = ['HOUR', 'TOKEN', 'NAME', 'RESOURCE', 'REQUESTS', 'RECORDS', 'PERSONAL FIELDS'];
const copyHeadings = ['COPY OF', 'TOKEN', 'NAME', 'STATE', 'LAST PASS', 'LAST CHANGES', 'LAST DIGEST'];

const printRegister = makeCommand(
  { ...makeOptions('string', 'workspace', 'from', 'to'), json: { type: 'boolean' } },
  async ({ workspace, from, to, json }) => {
    if (workspace === undefined) throw new UsageError('register needs --workspace.');
    for (const [option, day] of Object.entries({ from, to })) if (day !== undefined) requireDay(option, day);
    const { reads, copies } = await runAsAdmin(readAdminUrl(), async (client) => {
      const id = await findWorkspace(client, workspace);
      return {
        reads: (await client.query<ReportRow>(readsSql, [id, from ?? '-infinity', to ?? 'infinity'])).rows,
        copies: (await client.query<ReportRow>(copiesSql, [id])).rows,
      };
    });
    if (json) return printText(JSON.stringify({ reads, copies }, null, 2));
    if (reads.length === 0) printError('No personal data was read in this period.');
    else printTable([readHeadings, ...reads.map(listCells)]);
    if (copies.length === 0) return printError('No token holds a copy.');
    printLine('');
    printTable([copyHeadings, ...copies.map(listCells)]);
  },
);

const listCells = (row: ReportRow): string[] =>
  Object.values(row).map((value) => (Array.isArray(value) ? value.join(' ') : String(value ?? '-')));

/** Prints the register of reads, and the copies. */
export const runRegister: Command = async (args) => {
  await printRegister(args).catch(rephrase);
  return 0;
};
