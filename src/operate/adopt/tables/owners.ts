import type pg from 'pg';
import { isNamed, toSnakeCase } from '../../../base/words.js';
import { listPresentConditions } from '../columns/deletions.js';
import { isTextual } from '../columns/types.js';
import { toSingular } from '../names.js';
import type { Column, Owners, ReferenceStep, Survey, SurveySoFar, Table, Tenant } from '../schema.js';
import { findColumn, findNamedColumn } from '../schema.js';
import { alias, composeWhere, joinFrom, joinWorkspace, nameAs, quoteLiteral } from '../sql.js';
import { findIdColumn } from './keys.js';
import { listSteps } from './workspace-paths.js';

// The users who may have tokens: users of one workspace each, or members of several.

// Aliases of these tables; those on the path to the workspace have aliases of their own.
const userAlias = 'u';
const personAlias = 'p';
const roleAlias = 'r';

/** Prefers users with a workspace, then memberships, then workspaces with their owner. */
export function findOwners(known: Omit<SurveySoFar, 'owners'>): Owners | undefined {
  const { tables, tenant, users: people, workspaces } = known;
  if (people === undefined) return undefined;
  const peopleWorkspace = workspaces.get(people);
  const members = tables
    .flatMap((table) => findMembers(table, people, known))
    .sort((a, b) => b.rank - a.rank)[0]?.owners;
  // If memberships have roles, the workspace in a row of the users can be the workspace that the user has open.
  const hasFlag = people.columns.some(({ name }) => isNamed('ownerFlag', name));
  const isMember = members?.steps.length === 0 && hasRole(members.table) && !hasFlag;
  if (peopleWorkspace && peopleWorkspace.steps.length === 0 && !isMember)
    return addRole({ table: people, ...peopleWorkspace }, tables);
  if (members) return addRole(members, tables);
  const { root, rootId } = tenant;
  const user = root && findReferenceToUser(root, people, tenant, 'owner');
  if (root && rootId && user) return { table: root, tenant: rootId, steps: [], rivals: [], user };
  return peopleWorkspace && addRole({ table: people, ...peopleWorkspace }, tables);
}

type Membership = Readonly<{ owners: Owners; rank: number }>;

/** Recognizes memberships: each row names a user and a workspace, and its name, a unique index or a role tells that it is one. */
function findMembers(table: Table, people: Table, known: Omit<SurveySoFar, 'owners'>): Membership[] {
  const { tenant, workspaces } = known;
  const workspace = workspaces.get(table);
  const user = findReferenceToUser(table, people, tenant, 'member');
  const isOfUser = workspace?.steps.some((step) => step.table === people || step.from === user?.from);
  if (table === people || table === tenant.root || !workspace || !user || isOfUser) return [];
  const lead = workspace.steps[0]?.from ?? workspace.tenant;
  const pair = [lead.name, user.from.name];
  const isUnique = table.indexes.some(
    ({ isUnique, columns }) =>
      isUnique &&
      pair.every((name) => columns.includes(name)) &&
      columns.every((name) => name !== null && (pair.includes(name) || isNamed('deleted', name))),
  );
  const signs = [isNamed('membership', table.name), isUnique, hasRole(table)].filter(Boolean).length;
  if (signs === 0 || isNamed('invitation', table.name)) return [];
  const rank = signs * 10 - workspace.steps.length - table.columns.length / 100;
  return [{ owners: { table, ...workspace, user }, rank }];
}

function hasRole({ columns }: Table): boolean {
  return columns.some(({ name }) => /(^|_)(roles?|rol)(_id)?$/.test(toSnakeCase(name)) || isNamed('ownerFlag', name));
}

/** Follows a foreign key, or a column named after the users; of several the one whose name means the purpose. */
function findReferenceToUser(table: Table, people: Table, tenant: Tenant, purpose: 'owner' | 'member'): Owners['user'] {
  const id = findUserId(people, tenant);
  const trimReference = (name: string): string => toSnakeCase(name).replace(/_(id|uuid|key)$/, '');
  const keys = listSteps(table, [people]).map(({ from, to }) => ({ from, to }));
  const isNamedSo = ({ name, type }: Column): boolean =>
    type === id?.type && [toSingular(toSnakeCase(people.name)), 'user'].includes(trimReference(name));
  const guessed = table.columns.filter(isNamedSo).map((from) => ({ from, to: id as Column }));
  const found = keys.length > 0 ? keys : guessed;
  const isFit = ({ from }: { from: Column }): boolean => isNamed(purpose, trimReference(from.name));
  const others = purpose === 'member' ? found.filter(({ from }) => !isOfAuthor(trimReference(from.name))) : found;
  return found.find(isFit) ?? (purpose === 'member' || found.length === 1 ? others[0] : undefined);
}

/** Recognizes a column that names who wrote the row, such as an invitation: that user is no member by it. */
function isOfAuthor(name: string): boolean {
  return /(^|_)(by|creator|author|inviter|sender|reviewer|approver|editor)$/.test(name);
}

function addRole(owners: Owners, tables: readonly Table[]): Owners {
  for (const step of listSteps(owners.table, tables)) {
    const isRole = /(^|_)(role|rol)(_id)?$/.test(toSnakeCase(step.from.name));
    const label = step.table.columns.find(
      (column) => isTextual(column) && /^(key|code|slug|name|naam|type|kind|title)$/.test(column.name),
    );
    if (isRole && label) return { ...owners, role: { ...step, name: label } };
  }
  return owners;
}

/** Takes the users marked as owners; if nothing marks owners, it takes all users. */
export function composeOwnersSql({ users: people, owners, tables, tenant }: Survey): { sql: string; open?: string } {
  if (people === undefined || owners === undefined)
    return {
      sql: `select null::text as workspace_id, null::text as id, null::text as email where false`,
      open: 'no table of users with a workspace, or with memberships in workspaces, was found, so no token can be made: show workspace_id, id and email of the users who may have tokens.',
    };
  const { table, user, role } = owners;
  const owner = user ? userAlias : alias;
  const address = findAddress(people, tables) as Address;
  const { via } = address;
  const condition = composeOwnerCondition(owners);
  const select = [
    nameAs(joinWorkspace(owners), 'workspace_id'),
    nameAs(`${owner}.${(findUserId(people, tenant) ?? address.column).quoted}`, 'id'),
    nameAs(`${via ? personAlias : owner}.${address.column.quoted}`, 'email'),
  ];
  const joinTo = ({ table: next, from, to }: ReferenceStep, as: string, row: string): string =>
    `\n    join ${next.quoted} ${as} on ${as}.${to.quoted} = ${row}.${from.quoted}`;
  const joins = [
    ...(user ? [joinTo({ ...user, table: people }, userAlias, alias)] : []),
    ...(via ? [joinTo(via, personAlias, owner)] : []),
    ...(role && condition ? [joinTo(role, roleAlias, alias)] : []),
  ];
  const conditions = [
    ...(condition ? [condition] : []),
    ...listPresentConditions(table),
    ...(user ? listPresentConditions(people, userAlias) : []),
  ];
  // A user can be in a workspace by several memberships, each with a role.
  const sql = `select ${user ? 'distinct ' : ''}${select.join(', ')}\n${joinFrom(table.quoted, owners)}${joins.join('')}${composeWhere(conditions)}`;
  const everyone = `every user of ${table.quoted} may have tokens made: add a condition for the owners.`;
  return condition !== undefined || table === tenant.root ? { sql } : { sql, open: everyone };
}

/** Is undefined if no table lists the workspaces, or none has their owners. */
export async function countOwnerless(client: pg.Client, survey: Survey): Promise<Survey['ownerless']> {
  const { root, rootId } = survey.tenant;
  if (root === undefined || rootId === undefined || survey.owners === undefined) return undefined;
  const { rows } = await client.query<{ rows: number; of: number; ids: string[] }>(
    `select count(*) filter (where lacks)::int as rows, count(*)::int as of, coalesce((array_agg(id order by id) filter (where lacks))[1:3], '{}') as ids
      from (select t.${rootId.quoted}::text as id, not exists (select from (${composeOwnersSql(survey).sql}) o where o.workspace_id = t.${rootId.quoted}) as lacks
        from ${root.quoted} t where ${['true', ...listPresentConditions(root)].join(' and ')}) w`,
  );
  return rows[0];
}

interface Address {
  readonly column: Column;
  /** This person has the address; absent: the user has it. */
  readonly via?: ReferenceStep;
}

/** Takes the address of the user, or of the person that the user is; otherwise the login. */
function findAddress(people: Table, tables: readonly Table[]): Address | undefined {
  const own = findNamedColumn(people, 'email');
  if (own) return { column: own };
  for (const step of listSteps(people, tables)) {
    const column = findNamedColumn(step.table, 'email');
    if (step.from.notNull && column && step.table !== people) return { column, via: step };
  }
  const login = findNamedColumn(people, 'login');
  return login && { column: login };
}

/** A foreign key leads from the column to the users whose ids tokens have. */
export function namesOwner(column: Column, table: Table, { users: people, tenant, owners }: Survey): boolean {
  const id = people && owners && findUserId(people, tenant);
  return people !== undefined && listSteps(table, [people]).some(({ from, to }) => from === column && to === id);
}

function findUserId(people: Table, tenant: Tenant): Column | undefined {
  const id = findIdColumn(people, tenant);
  return id?.composedOf ? findColumn(people, 'id') : (id ?? findColumn(people, 'id'));
}

/** Recognizes users by the name of the table and an address or a login, otherwise by a password; prefers a table with the workspace. */
export function findUsers(tables: readonly Table[], tenant: Tenant): Table | undefined {
  // A workspace has an address as well.
  const candidates = tables.filter((table) => findAddress(table, tables) && !isNamed('workspaces', table.name));
  const namedTables = candidates.filter(({ name }) => isNamed('users', name));
  const others = candidates.filter(({ columns }) => columns.some(({ name }) => isNamed('password', name)));
  // A table such as the accounts of single sign-on has the address of its user.
  const own = namedTables.filter((table) => findAddress(table, [])?.column);
  const prefixed = candidates.filter(({ name }) => isNamed('prefixedUsers', name));
  const [people, ...rest] = [own.length > 0 ? own : namedTables, prefixed, others].map(
    (found) => found.find((table) => tenant.columnIn(table)) ?? found.find((table) => table !== tenant.root),
  );
  return people ?? rest.find((table) => table !== undefined);
}

function composeOwnerCondition({ table, role }: Owners): string | undefined {
  const flag = table.columns.find(({ name, type }) => isNamed('ownerFlag', name) && type === 'boolean');
  if (flag) return `${alias}.${flag.quoted}`;
  const column = table.columns.find((each) => isNamed('role', each.name) && listOwnerWords(each).length > 0);
  const roleColumn = column ?? role?.name;
  const words = roleColumn ? listOwnerWords(roleColumn).map(quoteLiteral) : [];
  if (roleColumn === undefined || words.length === 0) return undefined;
  const sql = `${column ? alias : roleAlias}.${roleColumn.quoted}`;
  if (roleColumn.isArray) return `(${words.map((word) => `${word} = any (${sql})`).join(' or ')})`;
  return words.length === 1 ? `${sql} = ${words[0]}` : `${sql} in (${words.join(', ')})`;
}

/** Collects words that mean an owner from values, items of lists, and labels that no row may have today. */
function listOwnerWords({ values, labels, isArray }: Column): string[] {
  const items = isArray ? values.flatMap((list) => list.replace(/[{}"]/g, '').split(',')) : values;
  return [...new Set([...items, ...labels].filter((value) => isNamed('owner', value)))].sort();
}
