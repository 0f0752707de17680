import type pg from 'pg';
import type { Resource } from '../definition/resource.js';
import { checkSql, faultIf, type Item, verdict } from './finding.js';

/** All privileges that a role of the gateway is meant to have, on the relations that match the expression. */
export interface AllowedPrivileges {
  readonly relations: RegExp;
  readonly privileges: readonly string[];
}

/** The reader has SELECT on the views of the resources. */
export function readerPrivileges(resources: readonly Resource[]): AllowedPrivileges {
  const views = resources.map(({ view }) => view.replaceAll('.', '[.]'));
  return { relations: new RegExp(`^(${views.join('|')})$`), privileges: ['SELECT'] };
}

/** The writer has privileges in the schema gateway, except on the migrations table; write views are checked by column. */
export const writer: AllowedPrivileges = {
  relations: /^gateway[.](?!migrations)/,
  privileges: ['SELECT', 'INSERT', 'UPDATE'],
};

interface RoleRow {
  readonly name: string;
  readonly superuser: boolean;
  readonly bypass_rls: boolean;
  readonly create_role: boolean;
  readonly create_db: boolean;
  readonly replication: boolean;
  readonly member_of: string[];
  readonly owns: string[];
  readonly creates_in: string[];
  readonly creates_temporary: boolean;
}

/** Checks that the role of the connection has no attribute, membership, possession or privilege beyond its task. */
export async function checkRole(client: pg.Client, allowance: AllowedPrivileges): Promise<Item[]> {
  const role = (await client.query<RoleRow>(checkSql('role'))).rows[0] as RoleRow;
  const whenOk = 'No superuser, no BYPASSRLS, member of no other role, owner of nothing.';
  const item = verdict('role', roleFaults(role), whenOk, role.name);
  if (role.superuser) return [item];
  const allowed = [allowance.relations.source, allowance.privileges];
  const { rows } = await client.query<{ excess: string }>(checkSql('excess'), allowed);
  const faults = rows.map(({ excess }) => `it ${excess}`);
  return [item, verdict('privileges', faults, 'None beyond those the gateway grants.', role.name)];
}

function roleFaults(role: RoleRow): string[] {
  const attributes = {
    SUPERUSER: role.superuser,
    BYPASSRLS: role.bypass_rls,
    CREATEROLE: role.create_role,
    CREATEDB: role.create_db,
    REPLICATION: role.replication,
  };
  const held = Object.entries(attributes).flatMap(([name, has]) => (has ? [name] : []));
  return [
    ...faultIf(held.length > 0, `it has ${held.join(', ')}`),
    ...faultIf(role.member_of.length > 0, `it is a member of ${role.member_of.join(', ')}`),
    ...faultIf(role.owns.length > 0, `it owns ${role.owns.join(', ')}`),
    ...role.creates_in.map((schema) => `it may create in schema ${schema}`),
    ...faultIf(role.creates_temporary, 'it may create temporary objects: revoke TEMPORARY on the database from PUBLIC'),
  ];
}
