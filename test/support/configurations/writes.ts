import { type Configurations, failed, primaryAs, refused, warning } from './configuration.js';

/** The app's rules refuse every value. */
const rules = [`exception 'closed'`, 'unique_violation', 'check_violation', 'numeric_value_out_of_range'];
const refusedBy: Configurations = Object.fromEntries(
  rules.map((rule) => [
    `every trial of a write is refused by ${rule}`,
    warning('writes', {
      detail: /^Every trial of a change and of a new record was refused, the last by the app: .+[.] If no/,
      change: () =>
        `create function app.refuse() returns trigger language plpgsql as $$ begin raise ${rule}; end $$;
         create trigger a_refusal before insert or update on app.installaties for each row execute function app.refuse()`,
      undo: () => 'drop function app.refuse cascade',
      thorough: true,
    }),
  ]),
);

const ofWrites: Configurations = {
  'the login of the replicas is used for the primary': refused('write_view', {
    detail: /the role cannot update naam \([/]fields[/]naam[/]write\)/,
    settings: (database) => ({ primaryUrls: primaryAs('gateway_reader', database) }),
    also: ['recovery', 'role_settings', 'privileges'],
  }),
  'the writer may change a column of the app': refused('write_view', {
    detail: /the role may update koudemiddel \([/]fields[/]koudemiddel[/]write\)/,
    change: () => 'grant update (koudemiddel) on gateway.installaties_write to gateway_writer',
    undo: () => 'revoke update (koudemiddel) on gateway.installaties_write from gateway_writer',
    also: ['migrated'],
  }),
  'the app cannot make tokens although its login has gateway_issuer': warning('token_look_up', {
    detail: /^gateway_owner lacks insert, update on gateway.api_tokens/,
    // a superuser: to every other role, `migrate` of another test file would grant what it takes from PUBLIC
    change: ({ name }) => `create role issuer_${name} superuser; grant gateway_issuer to issuer_${name};
      revoke insert, update (revoked_at) on gateway.api_tokens from gateway_owner`,
    undo: ({ name }) => `drop role issuer_${name};
      grant insert, update (revoked_at) on gateway.api_tokens to gateway_owner`,
    also: ['migrated'],
    thorough: true,
    resource: 'installaties',
  }),
  'a superuser owns a write view': refused('write_view', {
    detail: /its owner postgres is a superuser/,
    change: () => 'alter view gateway.installaties_write owner to postgres',
    undo: () => 'alter view gateway.installaties_write owner to gateway_owner',
    also: ['migrated'],
  }),
  'an UPDATE leaves the version as it is': failed('writes', {
    detail: /an UPDATE leaves version as it is, so two changes with one If-Match would both succeed/,
    change: () => 'alter table app.installaties disable trigger user',
    undo: () => 'alter table app.installaties enable trigger user',
    thorough: true,
  }),
  ...refusedBy,
  'the writer cannot claim keys': failed('writes', {
    detail: /^permission denied for table idempotency/,
    change: () => 'revoke insert on gateway.idempotency from gateway_writer',
    undo: () => 'grant insert (token_id, key, fingerprint) on gateway.idempotency to gateway_writer',
    thorough: true,
  }),
  'the writer cannot add entries to the audit log': failed('writes', {
    detail: /^permission denied for view logboeken_write/,
    change: () => 'revoke insert on gateway.logboeken_write from gateway_writer',
    undo: () =>
      'grant insert (entity, entity_id, actie, actor_type, actor_id, wijzigingen) on gateway.logboeken_write to gateway_writer',
    also: ['migrated'],
    thorough: true,
  }),
  'the writer cannot number entries of the audit log': failed('writes', {
    detail: /^permission denied for sequence logboeken_id_seq/,
    change: () => 'revoke usage on sequence app.logboeken_id_seq from gateway_writer',
    undo: () => 'grant usage on sequence app.logboeken_id_seq to gateway_writer',
    thorough: true,
  }),
  'a write view cannot be updated': failed('writes', {
    detail: /^cannot perform UPDATE RETURNING/,
    change: () => 'create rule fixed as on update to gateway.installaties_write do instead nothing',
    undo: () => 'drop rule fixed on gateway.installaties_write',
    thorough: true,
  }),
};

export const wrongWrites: Configurations = Object.fromEntries(
  Object.entries(ofWrites).map(([title, wrong]) => [title, { resource: 'installaties', ...wrong }]),
);
