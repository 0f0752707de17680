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
export function testPolicy(table: string, command: PolicyCommand, reader = 'current_user'): string {
  const name = `gateway_${command} on ${table}`;
  return `drop policy if exists ${name};\ncreate policy ${name} for ${command} to ${reader}, gateway_owner ${clauses[command]};`;
}
