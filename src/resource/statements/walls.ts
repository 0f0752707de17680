import { hash } from 'node:crypto';
import {
  type AuditColumns,
  type Direction,
  getColumns,
  listLeaves,
  nameRecords,
  nameWalled,
  type Resource,
  type ResourceAudit,
  type ResourceSync,
  type ResourceWrite,
  rowXid,
  versionColumn,
} from '../definition/resource.js';
import { listKeyColumns } from './conditions.js';
import { orderBy, readRows, sql } from './knex.js';

// The tenant wall. The operator's view in the schema `records` says what a record is; the roles of the gateway use views of the schema
// `gateway` that `migrate` makes of it: with the rows of one workspace, the columns of the definition, and the order in which a statement
// reads them. A security barrier lets no condition of a statement see a row before the wall does (PostgreSQL, "Rules and Privileges"). It
// is planned by itself, so an index serves a list in order only where the order stands inside the barrier: hence a view for each order.

// Example: for the list of klanten in ascending order,
//   create view gateway.klanten_asc with (security_barrier) as select "id", greatest("naam") as "naam", … from records.klanten
//   where workspace_id = (select … gateway.workspace()) order by "created_at" asc, "id" asc

/** A view of one definition, or of a log of the app, as SQL that `migrate` runs. */
export interface Wall {
  readonly name: string;
  /** `{type of records.klanten}` stands for the type of the view's workspace_id, `{digest of …}` for a digest of the view. */
  readonly sql: string;
  readonly hash: string;
}

function makeWall(name: string, statements: readonly string[]): Wall {
  const text = statements.map((each) => `${each};\n`).join('');
  return { name, sql: text, hash: hash('sha256', text) };
}

type ListOrder = Pick<Resource, 'view' | 'order'>;

/** Names the view for statements that read in the order of these columns, which ends with the key of the list or is `id` alone. */
export function nameOrderedView({ view, order }: ListOrder, columns: readonly string[], direction: Direction): string {
  const isKey = columns.join() === order.map(({ column }) => column).join();
  return nameWalled(view, isKey ? `_${direction}` : `_by_${columns[0]}${direction === 'asc' ? '' : '_desc'}`);
}

/** Adds the missing columns of the list's key. */
export function listOrderFrom(column: string, { order }: Pick<Resource, 'order'>): string[] {
  return [...new Set([column, ...order.map((each) => each.column)])];
}

interface GeneratedView {
  readonly view: string;
  readonly source: string;
  readonly columns: readonly string[];
  /** Columns that no statement compares. */
  readonly uncompared?: ReadonlySet<string>;
  readonly computed?: readonly string[];
  readonly order?: ReturnType<typeof orderBy>;
  readonly texts?: readonly string[];
  readonly isWrite?: boolean;
}

/** Column of an operator's view that the wall compares. No login can name it: estimates of the planner would list the workspaces. */
const workspaceColumn = 'workspace_id';

/** Lists the views that read a resource: the view of the records, without an order and with each, and the views of their parts. */
function listReadViews(resource: Resource): GeneratedView[] {
  const { view, sync, filters } = resource;
  const columns = getColumns(resource);
  const shown = {
    source: nameRecords(view),
    columns,
    uncompared: listUncomparedColumns(resource),
    computed: sync ? [composeRowVersion(resource, sync)] : [],
    texts: listLabelColumns(resource),
  };
  const addOrder = (by: readonly string[], direction: Direction): GeneratedView => {
    return { ...shown, view: nameOrderedView(resource, by, direction), order: orderBy(by, direction) };
  };
  const key = listKeyColumns(resource.order);
  const ofFilters = Object.values(filters).flatMap(({ column, nearlyUnique, ownIndex }) => {
    const by = listOrderFrom(column, resource);
    if (nearlyUnique) return [addOrder(by, 'asc'), addOrder(by, 'desc')];
    return ownIndex ? [addOrder(by, 'asc')] : [];
  });
  const plain = {
    ...shown,
    view,
    columns: [...columns, ...(sync ? [rowXid] : [])],
    computed: sync ? [...shown.computed, `${nameDigest(resource)} as ${sourceColumn}`] : [],
  };
  const parts = Object.values(sync?.parts ?? {}).flatMap((part): GeneratedView[] => {
    const unordered = { view: part.view, source: nameRecords(part.view), columns: partColumns };
    return [unordered, { ...unordered, view: nameOrderedPart(part.view), order: orderBy(['id', 'part_id'], 'asc') }];
  });
  const views = [plain, addOrder(key, 'asc'), addOrder(key, 'desc'), addOrder(['id'], 'asc'), ...ofFilters, ...parts];
  return [...new Map(views.map((each) => [each.view, each])).values()];
}

/** Lists the columns of no filter and no order. JSON has no order, so no leakproof operator compares it. */
function listUncomparedColumns(resource: Resource): ReadonlySet<string> {
  const compared = [...resource.order, ...Object.values(resource.filters)].map(({ column }) => column);
  const shownLeaves = listLeaves(resource).filter(({ field }) => field.pointer === undefined && field.type !== 'json');
  const kept = new Set(['id', ...compared]);
  return new Set(shownLeaves.map(({ field }) => field.column).filter((column) => !kept.has(column)));
}

const partColumns = ['id', 'part_id', rowXid];

export function nameOrderedPart(view: string): string {
  return nameWalled(view, '_asc');
}

/** Lists the views of the records and of their parts, without an order. */
export function getPlainViews({ view, sync }: Resource): string[] {
  return [view, ...Object.values(sync?.parts ?? {}).map((part) => part.view)];
}

export function getViews(resource: Resource): string[] {
  return listReadViews(resource).map(({ view }) => view);
}

/** Lists columns that filters compare as text: equality of enumerated types is not leakproof, so the barrier would delay it. */
function listLabelColumns({ filters }: Resource): string[] {
  return Object.values(filters).flatMap(({ type, column }) => (type === 'enum' ? [column] : []));
}

export function makeWalls(resources: readonly Resource[]): Wall[] {
  const referredTo = new Set(
    resources.flatMap((resource) => listLeaves(resource).flatMap(({ field }) => field.write?.references ?? [])),
  );
  const logs = new Map<string, ResourceAudit[]>();
  for (const { write } of resources)
    if (write?.audit) logs.set(write.audit.view, [...(logs.get(write.audit.view) ?? []), write.audit]);
  return [
    ...resources.map((resource) => makeResourceWall(resource, referredTo.has(resource.view))),
    ...[...logs.values()].map(makeLogWall),
  ];
}

/** Names the parameters of an entry of the audit log, by column. */
export const listEntryColumns = (columns: AuditColumns): readonly (readonly [column: string, parameter: string])[] => [
  [columns.entity, 'log.entity'],
  [columns.entityId, 'id'],
  [columns.action, 'log.action'],
  [columns.actorType, 'log.actorType'],
  [columns.actorId, 'claim.token'],
  [columns.changes, 'log.changes'],
];

function makeResourceWall(resource: Resource, isReferredTo: boolean): Wall {
  const { view, write } = resource;
  const views = listReadViews(resource);
  const plain = views.filter((each) => getPlainViews(resource).includes(each.view));
  const readers = `gateway_reader${write ? ', gateway_writer' : ''}`;
  return makeWall(resource.name, [
    ...plain.map(({ source, columns }) =>
      composeGrant('select', [workspaceColumn, ...columns], source, 'gateway_owner'),
    ),
    ...views.map(composeCreateView),
    sql.raw(`grant select on ?? to ${readers}`, [views.map((each) => each.view)]).toQuery(),
    ...(isReferredTo && !write ? [composeGrant('select', ['id'], view, 'gateway_writer')] : []),
    ...(write ? listWriteSql(resource, write) : []),
  ]);
}

/**
 * Computes the version of a row with its parts, a bigint: the XOR of a hash of the row and of each part, which sync combines in any
 * order. A hash is of the transaction that wrote the row, and of the transaction that wrote the record of the operator's view. The
 * planner leaves it out of statements that do not ask for it.
 */
function composeRowVersion(resource: Resource, sync: ResourceSync): string {
  const parts = Object.values(sync.parts).map((part, kind) =>
    sql.raw(
      ` # coalesce((select bit_xor(${composePartVersion(kind)}) from ?? part
      where part.workspace_id = ${sourceName}.workspace_id and part.id = ${sourceName}.id), 0)`,
      [nameRecords(part.view)],
    ),
  );
  return `${composeRecordVersion(nameDigest(resource))}${parts.join('')} as ${versionColumn}`;
}

/** Column with a digest of the operator's view, a bigint. */
export const sourceColumn = 'sync_source';

const nameDigest = ({ view }: Pick<Resource, 'view'>): string => `{digest of ${nameRecords(view)}}`;

/** Hashes the row itself for the version of its record; `source` is the digest of the operator's view. */
export const composeRecordVersion = (source: string): string => `hash_record_extended(row(${rowXid}, ${source}), 0)`;

/** Hashes a part for the version: it differs when a part is added, changed, deleted or moved. */
export const composePartVersion = (kind: number): string => `hash_record_extended(row(${kind}, part_id, ${rowXid}), 0)`;

const sourceName = 'source';

function listWriteSql(resource: Resource, write: ResourceWrite): string[] {
  const { view, records } = write;
  const columns = getColumns(resource);
  const { inserted, updated } = getGivenColumns(resource, write);
  const all = [...new Set([...columns, ...updated, ...inserted])];
  const grantsTo = (role: string, on: string, workspace: readonly string[]): string[] => [
    ...(inserted.length > 0 ? [composeGrant('insert', [...workspace, ...inserted], on, role)] : []),
    composeGrant('update', updated, on, role),
  ];
  return [
    composeGrant('select', [workspaceColumn, ...all], records, 'gateway_owner'),
    ...grantsTo('gateway_owner', records, [workspaceColumn]),
    composeCreateView({ view, source: records, columns: all, isWrite: true }),
    composeGrant('select', columns, view, 'gateway_writer'),
    ...grantsTo('gateway_writer', view, []),
  ];
}

/** Lists the columns to which a POST and a PATCH give values, of clients or of the gateway; no column of a POST if there is none. */
export function getGivenColumns(resource: Resource, { ids, creates, onCreate, onChange }: ResourceWrite) {
  const writable = listLeaves(resource).flatMap(({ field }) => (field.write ? [field.column] : []));
  const made = [...(ids === 'gateway' ? ['id'] : []), ...writable, ...Object.keys(onCreate)];
  return { inserted: creates ? made : [], updated: [...writable, ...Object.keys(onChange)] };
}

/** Makes a view by which entries are added to a log, never changed and never read by writes. */
function makeLogWall(rules: readonly ResourceAudit[]): Wall {
  const { view, records } = rules[0] as ResourceAudit;
  const all = rules.flatMap(({ columns }) => listEntryColumns(columns).map(([column]) => column));
  const entryColumns = [...new Set(all)];
  return makeWall(view.slice(view.indexOf('.') + 1), [
    composeGrant('insert', [workspaceColumn, ...entryColumns], records, 'gateway_owner'),
    composeCreateView({ view, source: records, columns: entryColumns, isWrite: true }),
    composeGrant('insert', entryColumns, view, 'gateway_writer'),
  ]);
}

/**
 * The workspace stands in a subquery, which the planner cannot evaluate: it expects a workspace of average size, so that one plan serves
 * all of them. Only a write view has the column of the workspace, which a new row needs: it has a default that no login can change, and no
 * login may read it. The check option keeps a row in its workspace on the way in.
 */
function composeCreateView(generated: GeneratedView): string {
  const { view, source, columns, uncompared = new Set(), computed = [], order = [], texts = [], isWrite } = generated;
  const ofStatement = `gateway.workspace()::{type of ${source}}`;
  const workspace = `(select coalesce((select id from gateway.verified_workspace), gateway.workspace())::{type of ${source}})`;
  const shownColumns = isWrite ? [workspaceColumn, ...columns] : columns;
  const asText = (column: string) => sql.raw('??::text as ??', [column, column]);
  /** GREATEST of one value is the value, and the planner has no statistics of it: its estimates spell out values of other workspaces. */
  const unestimated = (column: string) => sql.raw('greatest(??) as ??', [column, column]);
  const show = (column: string) =>
    texts.includes(column) ? asText(column) : uncompared.has(column) ? unestimated(column) : column;
  const rows = readRows(sql.raw(`?? ${sourceName}`, [source]), [sql.raw(`${workspaceColumn} = ${workspace}`)])
    .select(shownColumns.map(show))
    .select(computed.map((each) => sql.raw(each)))
    .orderBy(order);
  const statements = [
    `create view ?? with (security_barrier) as\n  ${rows}${isWrite ? '\n  with cascaded check option' : ''}`,
    `alter view ?? owner to gateway_owner`,
    ...(isWrite ? [`alter view ?? alter ${workspaceColumn} set default ${ofStatement}`] : []),
  ];
  return statements.map((each) => sql.raw(each, [view])).join(';\n');
}

function composeGrant(privilege: string, columns: readonly string[], view: string, role: string): string {
  return sql.raw(`grant ${privilege} (??) on ?? to ${role}`, [[...new Set(columns)], view]).toQuery();
}

/**
 * Row-level security of the app shows the owner of a view no row. Below a view `current_user` is the role that asks, and below a SECURITY
 * DEFINER function its owner: so only the gateway's roles meet this condition. A second login is a member of one of them and of no other
 * role; a role that migrates is a member of gateway_owner.
 */
export const byLogins = `current_user in ('gateway_owner', 'gateway_reader', 'gateway_writer') or (
    select count(distinct roleid) = 1 and bool_and(not admin_option and pg_has_role(roleid, 'usage')
      and roleid::regrole::text in ('gateway_reader', 'gateway_writer'))
    from pg_auth_members where member = to_regrole(quote_ident(current_user)))`;

const reads = `using (${byLogins})`;
const writes = `with check (${byLogins})`;
const clauses = { select: reads, insert: writes, update: `${reads} ${writes}` } as const;

export type PolicyCommand = keyof typeof clauses;

/** `reader` owns the view; gateway_owner owns the function that samples sealed values. */
export function composePolicy(table: string, command: PolicyCommand, reader = 'current_user'): string {
  const name = `gateway_${command} on ${table}`;
  return `drop policy if exists ${name};\ncreate policy ${name} for ${command} to ${reader}, gateway_owner ${clauses[command]};`;
}
