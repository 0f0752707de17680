import { type Configurations, primaryAs } from './configuration.js';

/** Wrong privileges of the writer, write views and triggers. */
export const wrongWrites: Configurations = {
  'the login of the replicas is used for the primary': {
    settings: (database) => ({ primaryUrls: primaryAs('gateway_reader', database) }),
    level: 'refused',
    code: 'write_view',
    detail: /the role cannot update naam \([/]fields[/]naam[/]write\)/,
    also: ['recovery', 'role_settings', 'privileges'],
  },
  'the writer may change a column of the app': {
    change: () => 'grant update (koudemiddel) on gateway.installaties_write to gateway_writer',
    undo: () => 'revoke update (koudemiddel) on gateway.installaties_write from gateway_writer',
    level: 'refused',
    code: 'write_view',
    detail: /the role may update koudemiddel \([/]fields[/]koudemiddel[/]write\)/,
    also: ['migrated'],
  },
  'a superuser owns a write view': {
    change: () => 'alter view gateway.installaties_write owner to postgres',
    undo: () => 'alter view gateway.installaties_write owner to gateway_owner',
    level: 'refused',
    code: 'write_view',
    detail: /its owner postgres is a superuser/,
    also: ['migrated'],
  },
  'the writer cannot read what it has written': {
    change: () => 'revoke select on gateway.installaties from gateway_writer',
    undo: () => 'grant select on gateway.installaties to gateway_writer',
    level: 'failed',
    code: 'write_view',
    detail: /cannot select workspace_id, .* of gateway[.]installaties, so a workspace that has just written gets 500/,
    also: ['migrated'],
  },
  'an UPDATE leaves the version as it is': {
    change: () => 'alter table app.installaties disable trigger user',
    undo: () => 'alter table app.installaties enable trigger user',
    level: 'failed',
    code: 'writes',
    detail: /an UPDATE leaves version as it is, so two changes with one If-Match would both succeed/,
    thorough: true,
  },
  'every trial of a write is refused': {
    change: () =>
      `create function app.refuse() returns trigger language plpgsql as $$ begin raise exception 'the app has not said its name'; end $$;
       create trigger a_refusal before insert or update on app.installaties for each row execute function app.refuse()`,
    undo: () => 'drop function app.refuse cascade',
    level: 'warning',
    code: 'writes',
    detail:
      /^Every trial of a change and of a new record was refused, the last by the app: the app has not said its name[.] If no/,
    thorough: true,
  },
  'the writer cannot claim keys': {
    change: () => 'revoke insert on gateway.idempotency from gateway_writer',
    undo: () => 'grant insert (workspace_id, token_id, key, fingerprint) on gateway.idempotency to gateway_writer',
    level: 'failed',
    code: 'writes',
    detail: /the statement installaties.claim: permission denied for table idempotency/,
    thorough: true,
  },
  'the writer cannot add entries to the audit log': {
    change: () => 'revoke insert on gateway.logboeken_write from gateway_writer',
    undo: () =>
      'grant insert (workspace_id, entity, entity_id, actie, actor_type, actor_id, wijzigingen) on gateway.logboeken_write to gateway_writer',
    level: 'failed',
    code: 'writes',
    detail: /the statement installaties[.]update: permission denied for view logboeken_write/,
    also: ['migrated'],
    thorough: true,
  },
  'the writer cannot number entries of the audit log': {
    change: () => 'revoke usage on sequence app.logboeken_id_seq from gateway_writer',
    undo: () => 'grant usage on sequence app.logboeken_id_seq to gateway_writer',
    level: 'failed',
    code: 'writes',
    detail: /the statement installaties[.]update: permission denied for sequence logboeken_id_seq/,
    thorough: true,
  },
  'a write view cannot be updated': {
    change: () => 'create rule fixed as on update to gateway.installaties_write do instead nothing',
    undo: () => 'drop rule fixed on gateway.installaties_write',
    level: 'failed',
    code: 'writes',
    detail: /the statement installaties.update: cannot perform UPDATE RETURNING/,
    thorough: true,
  },
};
