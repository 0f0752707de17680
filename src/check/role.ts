import type pg from 'pg';
import type { Resource } from '../definition/resource.js';
import { viewsOf } from '../definition/walls.js';
import { checkSql, faultIf, type Item, verdict, warning } from './finding.js';

/** All privileges that a role of the gateway is meant to have, on the relations that match the expression. */
export interface AllowedPrivileges {
  /** The role that the login is, or that it is a member of. */
  readonly role: string;
  readonly relations: RegExp;
  readonly privileges: readonly string[];
}

/** The reader has SELECT on the views of the resources, and on the list of what `migrate` applied. */
export function readerPrivileges(resources: readonly Resource[]): AllowedPrivileges {
  const views = ['gateway.applied_files', ...resources.flatMap(viewsOf)].map((view) => view.replaceAll('.', '[.]'));
  return { role: 'gateway_reader', relations: new RegExp(`^(${views.join('|')})$`), privileges: ['SELECT'] };
}

/** The writer has privileges in the schema gateway; write views are checked by column. */
export const writer: AllowedPrivileges = {
  role: 'gateway_writer',
  relations: /^gateway[.]/,
  privileges: ['SELECT', 'INSERT', 'UPDATE'],
};

interface RoleRow {
  readonly name: string;
  readonly superuser: boolean;
  readonly bypass_rls: boolean;
  readonly create_role: boolean;
  readonly create_db: boolean;
  readonly replication: boolean;
  /** Roles other than the allowed one. */
  readonly member_of: string[];
  /** Such as "can grant it", of the membership in the allowed role. */
  readonly membership_faults: string[];
  readonly owns: string[];
  readonly creates_in: string[];
  /** The roles that have it make temporary objects, PUBLIC among them. */
  readonly temporary_from: string[];
  readonly missing_settings: string[];
}

/**
 * Checks that the role of the connection has no attribute, membership, possession or privilege beyond its task. A login that is a
 * member of exactly the allowed role is accepted, so that passwords can be changed without a gap.
 */
export async function checkRole(client: pg.Client, allowance: AllowedPrivileges): Promise<Item[]> {
  const role = (await client.query<RoleRow>(checkSql('role'), [allowance.role])).rows[0] as RoleRow;
  const whenOk = 'No superuser, no BYPASSRLS, member of no further role, owner of nothing.';
  const item = verdict('role', roleFaults(role, allowance), whenOk, role.name);
  if (role.superuser) return [item];
  const allowed = [allowance.relations.source, allowance.privileges];
  const { rows } = await client.query<{ excess: string }>(checkSql('excess'), allowed);
  const faults = rows.map(({ excess }) => `it ${excess}`);
  const privileges = verdict('privileges', faults, 'None beyond those the gateway grants.', role.name);
  if (role.missing_settings.length === 0) return [item, privileges];
  const lacking = `It lacks ${role.missing_settings.join(', ')}, which ${allowance.role} has.`;
  return [item, privileges, warning('role_settings', lacking, role.name)];
}

function roleFaults(role: RoleRow, allowance: AllowedPrivileges): string[] {
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
    ...role.membership_faults.map((fault) => `it is a member of ${allowance.role} and ${fault}`),
    ...faultIf(role.owns.length > 0, `it owns ${role.owns.join(', ')}`),
    ...role.creates_in.map((schema) => `it may create in schema ${schema}`),
    ...faultIf(
      role.temporary_from.length > 0,
      `it may create temporary objects: revoke TEMPORARY on the database from ${role.temporary_from.join(', ')}`,
    ),
  ];
}
