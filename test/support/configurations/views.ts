import { type Configurations, failed, refused, warning } from './configuration.js';

/** Replaces a view of the operator's by one with another text in it, and keeps the shipped one. */
const changedView = (name: string, text: string, other: string): string =>
  `create table public.definition as select 'create or replace view records.${name} as ' || pg_get_viewdef('records.${name}') as text;
   do $$ begin execute (select regexp_replace(text, '(klanten[.])?${text}', '${other}') from public.definition); end $$`;
const shippedView = (): string =>
  `do $$ begin execute (select text from public.definition); end $$; drop table public.definition`;

/** Gives klanten values that no key opens; resolves with the values before. */
const damage = (where: string) => (): string =>
  `create table public.kept as select id, naam from app.klanten; update app.klanten set naam = 'enc:v2:k1:AAAA' where ${where}`;
const repair = (): string =>
  'update app.klanten k set naam = kept.naam from public.kept where kept.id = k.id; drop table public.kept';

export const wrongViews: Configurations = {
  'a column has a type that does not fit': refused('view', {
    detail:
      /column naam is missing \([/]fields[/]naam[/]column\); the definition is config[/]resources[/]klanten[.]json/,
    change: () => 'alter view gateway.klanten rename column naam to name',
    undo: () => 'alter view gateway.klanten rename column name to naam',
    also: ['migrated'],
  }),
  'the wall of a view is gone': refused('migrated', {
    detail: /^changed since `migrate` made them: the views of gateway[/]klanten\.$/,
    change: () => `create table public.definition as select pg_get_viewdef('gateway.klanten_asc') as text;
    do $$ begin execute (select 'create or replace view gateway.klanten_asc as ' || regexp_replace(text, 'WHERE.*ORDER', 'ORDER') from public.definition); end $$`,
    undo: () => `do $$ begin execute (select 'create or replace view gateway.klanten_asc with (security_barrier) as ' || text
      from public.definition); end $$; drop table public.definition`,
  }),
  'another column has the name of one below a view': refused('migrated', {
    detail: /^the views of views[/]klanten\.sql do not read app\.klanten\.land any more/,
    change: () => 'alter table app.klanten rename land to land_old; alter table app.klanten add land text',
    undo: () => 'alter table app.klanten drop land; alter table app.klanten rename land_old to land',
  }),
  'the owner of a view lost a privilege below it': refused('view', {
    detail: /the role gateway_owner cannot select records\.klanten\.naam: grant it/,
    change: () => 'revoke select (naam) on records.klanten from gateway_owner',
    undo: () => 'grant select (naam) on records.klanten to gateway_owner',
    also: ['scans'],
  }),
  'the function of the wall is another': refused('migrated', {
    detail: /^changed since `migrate` made it: function gateway[.]workspace[(][)] [(]text/,
    change: () =>
      `create table public.definition as select pg_get_functiondef('gateway.workspace()'::regprocedure) as text;
    alter function gateway.workspace() volatile; create or replace function gateway.workspace() returns text language sql stable as $$ select '1' $$`,
    undo: () => `do $$ begin execute (select text from public.definition); end $$; drop table public.definition`,
    also: ['scans'],
  }),
  'the views are made of another definition': failed('migrated', {
    detail: /^made of other definitions: the views of klanten\.$/,
    change: () => `update gateway.applied_files set hash = 'x' || hash where name = 'klanten'`,
    undo: () => `update gateway.applied_files set hash = substr(hash, 2) where name = 'klanten'`,
  }),
  'a row of any workspace that no foreign key names decides about a value': refused('scans', {
    detail: /^it reads app[.]klanten [(]o[)] without comparing workspace_id with the workspace[.]$/,
    change: () =>
      changedView(
        'klanten',
        'naam,',
        'case when (select true from app.klanten o where o.naam = klanten.straat) then naam end as naam,',
      ),
    undo: shippedView,
    also: ['migrated'],
  }),
  'a function of the schema gateway reads as its owner': refused('scans', {
    detail: /^it calls gateway[.]newest[(][)], which reads as its owner, and whose scans no check sees[.]$/,
    change:
      () => `create function gateway.newest() returns timestamptz language sql stable security definer as 'select max(updated_at) from app.klanten';
    ${changedView('klanten', 'updated_at,', 'gateway.newest() as updated_at,')}`,
    undo: () => `${shippedView()}; drop function gateway.newest`,
    also: ['migrated'],
  }),
  'a view shows several rows with one id': failed('ids', {
    detail: /^Several rows of a workspace have one id, such as [-0-9a-f]{36}\.$/,
    change: () =>
      `create table public.definition as select pg_get_viewdef('records.klanten') as text;
     do $$ begin execute (select 'create or replace view records.klanten as ' || rtrim(text, ';') || ' union all ' || text from public.definition); end $$`,
    undo: () => `do $$ begin execute (select 'create or replace view records.klanten as ' || text from public.definition); end $$;
     drop table public.definition`,
    also: ['plans', 'migrated'],
    thorough: true,
  }),
  'no workspaces can be taken as a sample': warning('workspaces', {
    detail: /^ADMIN_URL is not set, so no workspace is known/,
    settings: () => ({ adminUrl: '' }),
    thorough: true,
  }),
  'a value is damaged': warning('values', {
    detail: /[/]naam: 1 of \d+ values are stored but shown as null \(bad_format\), such as in row [-0-9a-f]{36}/,
    change: damage('id = (select id from app.klanten where naam is not null order by created_at, id limit 1)'),
    undo: repair,
    thorough: true,
  }),
  'one of ten values is damaged': failed('values', {
    detail: /[/]naam: \d+ of \d+ values are stored but shown as null \(bad_format\)/,
    change: damage(`right(id::text, 1) in ('a', 'b')`),
    undo: repair,
    thorough: true,
  }),
  'all values of a field are damaged': refused('values', {
    detail: /[/]naam: (\d+) of \1 values are stored but shown as null \(bad_format\)/,
    change: damage('naam is not null'),
    undo: repair,
    thorough: true,
  }),
  'records do not fit their schema': failed('schema', {
    detail:
      /^Records do not fit it: [/]fields[/]handelingen \(type\); the definition is config[/]resources[/]werkbonnen[.]json\.$/,
    change: () => `create table public.definition as select pg_get_viewdef('records.werkbonnen') as text;
    do $$ begin execute 'create or replace view records.werkbonnen as ' ||
      regexp_replace((select text from public.definition), '\\(\\s*SELECT COALESCE\\(json_agg\\(h[.*]*\\)[^;]*?AS handelingen', '''{}''::json AS handelingen'); end $$`,
    undo: () => `do $$ begin execute 'create or replace view records.werkbonnen as ' || (select text from public.definition); end $$;
    drop table public.definition`,
    also: ['migrated', 'shown'],
    resource: 'werkbonnen',
    thorough: true,
  }),
  'a list has no index, whatever limit a subquery of its view has': failed('plans', {
    detail: /^No index fits: the list sorts/,
    also: ['indexes'],
    change: () => `drop index app.klanten_lijst, app.gateway_klanten_gewijzigd;
      ${changedView('klanten', 'created_at,', '(select klanten.created_at limit 1) as created_at,')}`,
    undo: () => `${shippedView()}; create index klanten_lijst on app.klanten (workspace_id, created_at, id);
      create index gateway_klanten_gewijzigd on app.klanten (workspace_id, created_at, id, updated_at)`,
    thorough: true,
  }),
  'a filter of nearly unique values has no index': failed('plans', {
    detail: /^No index fits: the list by serienummer sorts\.$/,
    also: ['indexes'],
    change: () => 'drop index app.gateway_installaties_serienummer',
    undo: () =>
      'create index gateway_installaties_serienummer on app.installaties (workspace_id, serienummer, created_at, id)',
    resource: 'installaties',
    thorough: true,
  }),
  'a filter that the definition says has an index of its own has none': failed('plans', {
    detail: /^No index fits: the list by updatedSince sorts\.$/,
    also: ['indexes'],
    change: () => 'drop index app.gateway_werkbonnen_sinds',
    undo: () => 'create index gateway_werkbonnen_sinds on app.werkbonnen (workspace_id, updated_at, datum, id)',
    resource: 'werkbonnen',
    thorough: true,
  }),
  'the parts of a record have no index for sync': failed('plans', {
    detail: /^No index fits: uren by since sorts; digest and ids scans werkbon_uren\.$/,
    also: ['indexes'],
    change: () => 'drop index app.werkbon_uren_sync',
    undo: () => 'create index werkbon_uren_sync on app.werkbon_uren (workspace_id, werkbon_id, id)',
    resource: 'werkbonnen',
    thorough: true,
  }),
};
