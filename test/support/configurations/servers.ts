import { randomBytes } from 'node:crypto';
import { urlAs } from '../../../demo/cluster/passwords.js';
import { readProject } from '../../../src/base/paths.js';
import { shared } from '../workspace.js';
import { type Configurations, failed, primaryAs, refused, replicaAs, warning } from './configuration.js';

const withPassword = (url: string, password: string): string => Object.assign(new URL(url), { password }).href;

export const wrongServers: Configurations = {
  'REPLICA_URLS is not set': refused('replicas', {
    detail: /REPLICA_URLS is not set/,
    settings: () => ({ replicaUrls: '' }),
  }),
  'CODEC_MODULE names no file': refused('codec_module', {
    detail: /nowhere\.mjs cannot be loaded/,
    settings: () => ({ codecModule: './nowhere.mjs' }),
  }),
  'nothing listens at the address of a replica': failed('connection', {
    detail: /cannot be reached now: .*ECONNREFUSED/,
    settings: () => ({ replicaUrls: 'postgres://gateway_reader@127.0.0.1:1/app' }),
  }),
  'the server offers no TLS': failed('encryption', {
    detail: /^TLS fails: The server does not support SSL connections[.]$/,
    settings: (database) => ({ replicaUrls: `${database.settings.replicaUrls}?sslmode=verify-full` }),
    also: ['connection'],
  }),
  'the password is wrong': refused('connection', {
    detail: /password authentication failed.*28P01/,
    settings: (database) => ({ replicaUrls: withPassword(database.settings.replicaUrls, 'wrong') }),
  }),
  'there is no such database': refused('connection', {
    detail: /database "nowhere" does not exist/,
    settings: () => ({ replicaUrls: urlAs(shared.replicas[0] as string, 'gateway_reader', 'nowhere') }),
  }),
  'REPLICA_URLS names the primary': failed('recovery', {
    detail: /reads will be answered 503, writes are served/,
    settings: (database) => ({ replicaUrls: primaryAs('gateway_reader', database) }),
  }),
  'PRIMARY_URLS names a replica': failed('recovery', {
    detail: /writes will be answered 503/,
    settings: (database) => ({ primaryUrls: replicaAs('gateway_writer', database) }),
  }),
  'the login is a superuser': refused('role', {
    detail: /it has SUPERUSER/,
    settings: (database) => ({ replicaUrls: replicaAs('postgres', database) }),
    also: ['session', 'role_settings'],
  }),
  // A function of a trigger is none of them: no statement can call it.
  'the roles can execute 23 functions of the app that read as their owner': refused('privileges', {
    detail: /^(it may execute the SECURITY DEFINER function noisy[.]f\d+\(\); ){20}and 3 more[.]$/,
    change: () => `create schema noisy; grant usage on schema noisy to public; do $$ begin for i in 1..23 loop
      execute format('create function noisy.f%s() returns int language sql security definer as ''select 1''', i);
      execute format('create function noisy.t%s() returns trigger language plpgsql security definer as ''begin return new; end''', i); end loop; end $$`,
    undo: () => 'drop schema noisy cascade',
  }),
  'the roles can create temporary objects': refused('role', {
    detail: /revoke TEMPORARY on the database from PUBLIC/,
    change: ({ name }) => `grant temporary on database ${name} to public`,
    undo: ({ name }) => `revoke temporary on database ${name} from public`,
  }),
  'the reader may read a table of the app': refused('privileges', {
    detail: /app\.users/,
    change: () => 'grant usage on schema app to gateway_reader; grant select on app.users to gateway_reader',
    undo: () => 'revoke usage on schema app from gateway_reader; revoke select on app.users from gateway_reader',
  }),
  'a function costs less than a comparison': refused('privileges', {
    detail: /function cheap\(text\), whose cost of 0.1 is below 1/,
    change: () => `create function public.cheap(text) returns boolean language sql cost 0.1 as 'select true'`,
    undo: () => 'drop function public.cheap',
  }),
  'TIME_ZONE is unknown': refused('time_zone', { detail: /no time zone Mars/, settings: () => ({ timeZone: 'Mars' }) }),
  'tokens cannot be looked up': refused('token_look_up', {
    detail: /permission denied for function find_token/,
    change: () => 'revoke execute on function gateway.find_token(bytea) from gateway_reader',
    undo: () => 'grant execute on function gateway.find_token(bytea) to gateway_reader',
    also: ['migrated'],
  }),
  'the look-up of tokens is slow, without a word about the firewall': failed('connection', {
    detail: /^token look up takes too long, so it is not judged[.]$/,
    change: () => `alter function gateway.find_token(bytea) rename to find_token_at_once;
      create function gateway.find_token(bytea) returns setof text language sql as $$ select pg_sleep(9)::text $$; grant execute on function gateway.find_token(bytea) to gateway_reader`,
    undo: () =>
      'drop function gateway.find_token(bytea); alter function gateway.find_token_at_once(bytea) rename to find_token',
    also: ['migrated'],
  }),
  'DATA_KEYS lacks a key in use': refused('keyring', {
    detail: /DATA_KEYS lacks k2, k3/,
    settings: () => ({ dataKeys: JSON.stringify({ k1: shared.keys.k1 }) }),
    also: ['values'],
  }),
  'DATA_KEYS has other keys under the ids of those in use': refused('values', {
    detail:
      /[/]naam: (\d+) of \1 values are stored but shown as null \(bad_tag(, bad_format)?\), such as in row [-0-9a-f]{36}/,
    settings: () => ({ dataKeys: JSON.stringify({ k1: shared.keys.k2, k2: shared.keys.k3, k3: shared.keys.k1 }) }),
    also: ['keyring'],
    thorough: true,
  }),
  'DATA_KEYS has another key under one of the ids in use': refused('keyring', {
    detail: /^DATA_KEYS has another key than the database under k3: (\d+) of \1 values do not open[.]$/,
    settings: () => ({ dataKeys: JSON.stringify({ ...shared.keys, k3: randomBytes(32).toString('base64') }) }),
  }),
  'the app has used different keys under one id': failed('keyring', {
    detail: /under k1: \d+ of 100 values do not open[.]$/,
    change: () => `create table app.names as select id, naam from app.klanten where naam like '%:k3:%';
      update app.klanten set naam = replace(naam, ':k3:', ':k1:')`,
    undo: () => 'update app.klanten k set naam = n.naam from app.names n where n.id = k.id; drop table app.names',
    also: ['values'],
  }),
  'the clock of the gateway is off': failed('clock', {
    detail: /-\d+ ms from the gateway's; expiry of tokens/,
    clockMs: 5000,
  }),
  'the clock of the gateway is off by more than a MAC holds': failed('clock', {
    detail: /answered 503/,
    clockMs: 4_000_000,
  }),
  'a function of the app sends whole records to every listener': warning('privileges', {
    detail: /^app[.]shout\(\) sends more/,
    change: () => `create function app.shout() returns trigger language plpgsql as
      $$ begin perform pg_notify('changes', row_to_json(new)::text); return new; end $$;
      create function app.hint() returns trigger language plpgsql as $$ begin perform pg_notify('changes', 'klanten'); return new; end $$`,
    undo: () => 'drop function app.shout(), app.hint()',
  }),
  'the role has settings that a login made': warning('role_settings', {
    detail: /^the role has settings that `migrate` does not make, statement_timeout=1ms: reset those/,
    change: ({ name }) =>
      `alter role gateway_reader in database ${name} set statement_timeout = '1ms'; alter role gateway_reader in database ${name} set app.user_id = '1'`,
    undo: ({ name }) => `alter role gateway_reader in database ${name} reset all`,
  }),
  'the role has a setting that PostgreSQL resets only with all others': warning('role_settings', {
    detail: /transaction_read_only=on: reset those .*, with `alter role … reset all`/,
    change: ({ name }) => `alter role gateway_reader in database ${name} set transaction_read_only = on`,
    undo: ({ name }) => `alter role gateway_reader in database ${name} reset all`,
  }),
  'the role has default privileges': warning('role_settings', {
    detail: /has default privileges.*for role gateway_reader/,
    change: () => 'alter default privileges for role gateway_reader grant select on tables to public',
    undo: () => 'alter default privileges for role gateway_reader revoke select on tables from public',
  }),
  'the password of a login expires in 13 days': warning('role', {
    detail: /^the password of \w+_late expires [-\d]+ [\d:]+ UTC/,
    settings: (database) => ({ replicaUrls: withPassword(replicaAs(`${database.name}_late`, database), 'secret') }),
    change: ({
      name,
    }) => `set gateway.login = '${name}_late'; set gateway.role = 'gateway_reader'; ${readProject('deploy/login.sql')};
      alter role ${name}_late password 'secret' valid until '${new Date(Date.now() + 13 * 86_400_000).toISOString()}'`,
    undo: ({ name }) => `drop role ${name}_late`,
  }),
  'role and server allow fewer connections than the pools need': failed('connections', {
    detail:
      /^315 are needed, 104 of the pools and a probe, by 3 workers and 1 machines; up to 954 while statements wait for locks; the role allows 290, the server allows 297\.$/,
    settings: () => ({ shortConnections: 100, webConcurrency: 3 }),
    change: () => 'alter role gateway_reader connection limit 290',
    undo: () => 'alter role gateway_reader connection limit -1',
  }),
  'the database allows what the pools need, and not what locks add to it': warning('connections', {
    detail: /^7 are needed, .*; up to 24 while statements wait for locks; the database allows 20\.$/,
    change: ({ name }) => `alter database ${name} connection limit 20`,
    undo: ({ name }) => `alter database ${name} connection limit -1`,
  }),
  'nothing listens at the address of Redis': failed('redis', {
    detail: /ECONNREFUSED/,
    settings: () => ({ redisUrl: 'redis://127.0.0.1:1' }),
    thorough: true,
  }),
};
