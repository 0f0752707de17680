import type { Column } from './catalog.js';
import { isTextual } from './columns.js';
import { isMoments } from './moments.js';
import { isNamed } from './names.js';
import { valuesOf } from './samples.js';
import type { Survey } from './survey.js';

/** How writes appear in the app's audit log, and the view that adds its entries. */
export interface LogWrite {
  /** The part of a definition; absent: the gateway cannot write the log. */
  readonly audit?: {
    readonly created: string;
    readonly changed: string;
    readonly actorType: string;
    readonly view: string;
  };
  /** The SQL file of records.logboeken_write. */
  readonly sql?: string;
}

// Whole words: a stored sentence such as "Created job for Jan Jansen" must not get into a file, or into other workspaces.
const created = /^(created?|insert|inserted|add|added|new|aangemaakt|toegevoegd)$/i;
const changed = /^(updated?|changed?|edit|edited|modify|modified|gewijzigd|bijgewerkt)$/i;

const view = 'records.logboeken_write';

/** Drafts records.logboeken_write over the log of the schema, when all that an entry needs is known. */
export function logWrite({ subjects }: Survey): LogWrite {
  const subject = subjects.find(({ log, steps }) => log?.shape !== undefined && steps.length === 0);
  const log = subject?.log;
  if (subject === undefined || log === undefined) return {};
  const { table, tenant, id, rows } = subject;
  const named = (purpose: 'actorType' | 'actorId'): Column | undefined =>
    table.columns.find((column) => isNamed(purpose, column.name) && isTextual(column));
  const [type, actor] = [named('actorType'), named('actorId')];
  if (type === undefined || actor === undefined) return {};
  const entry: readonly (readonly [Column, string])[] = [
    [tenant, 'workspace_id'],
    [log.entity, 'entity'],
    [log.entityId, 'entity_id'],
    [log.action, 'action'],
    [type, 'actor_type'],
    [actor, 'actor_id'],
    [log.diff, 'changes'],
  ];
  const given = new Set([...entry.map(([column]) => column), id]);
  const others = table.columns.filter((column) => column.notNull && !column.made && !given.has(column));
  const moment = others.find((column) => isTextual(column) && isMoments(valuesOf(rows, column.name)));
  if (!id.made || others.some((column) => column !== moment)) return {};
  const items = entry.map(([{ quoted }, name]) => (quoted === name ? name : `${quoted} as ${name}`));
  const words = valuesOf(rows, log.action.name);
  return {
    audit: {
      created: words.find((word) => created.test(word)) ?? 'create',
      changed: words.find((word) => changed.test(word)) ?? 'update',
      actorType: 'api_token',
      view,
    },
    sql: [
      `-- The app's own audit log: entries are added, never changed and never read here.`,
      ...(id.sequence
        ? [
            `grant usage on sequence ${id.sequence} to gateway_writer; -- a column default runs with the rights of the inserting role`,
          ]
        : []),
      `create view ${view} as`,
      `  select ${[...items, ...(moment ? [moment.quoted] : [])].join(', ')}`,
      `  from ${table.quoted};`,
      ...(moment
        ? [
            `alter view ${view} alter column ${moment.quoted}`,
            `  set default to_char(clock_timestamp() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"');`,
          ]
        : []),
      '',
    ].join('\n'),
  };
}
