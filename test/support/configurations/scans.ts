const workspace = 'gateway.workspace()::uuid';

/** The app has more tables: a column of another name tells the workspace, or another table does, or the rows are for all workspaces. */
export const moreTables = `create table app.notities (id int primary key, ws uuid references app.workspaces, klant uuid, tekst text);
  create table app.regels (id int primary key, werkbon_id uuid references app.werkbonnen, tekst text);
  create table app.landen (code text primary key, naam text)`;

const asOwner = `returns text stable security definer language sql as 'select max(naam) from app.klanten'`;
/** Each reads rows of any workspace as its owner, also behind an operator, a cast and an aggregate, but `"o'k"` and the overload of numbers. */
export const functionsOfOwner = `create schema "Trial.s"; create function trial."getRows"(text) ${asOwner};
  create function "Trial.s".rows() ${asOwner}; create function trial."a ""b('é$"(text) ${asOwner}; create function trial.overload(text) ${asOwner};
  create function trial.overload(bigint) returns text stable language plpgsql as 'begin return null; end';
  create function trial.compare(text, text) returns boolean stable security definer language sql as 'select exists (select from app.klanten)';
  create operator trial.=== (function = trial.compare, leftarg = text, rightarg = text); create type trial.naam as (naam text);
  create function trial.to_naam(uuid) returns trial.naam stable security definer language sql as 'select row(max(naam))::trial.naam from app.klanten';
  create cast (uuid as trial.naam) with function trial.to_naam(uuid); create function trial.add(text, text) ${asOwner}; create aggregate trial.collect(text) (sfunc = trial.add, stype = text);
  create view trial.below as select workspace_id, id, naam operator(trial.===) 'x' as x from app.klanten;
  create function trial."o'k"(text) returns text stable language plpgsql as 'begin return $1; end'`;

export const leakingViews: Readonly<Record<string, string>> = {
  'a value by a subquery of any workspace': `select k.workspace_id, k.id, (select k2.naam from app.klanten k2 where k2.id <> k.id limit 1) x from app.klanten k where k.workspace_id = ${workspace}`,
  'the previous row of any workspace': `select k.workspace_id, k.id, p.naam from app.klanten k left join lateral (select naam from app.klanten p where p.id < k.id order by p.id desc limit 1) p on true where k.workspace_id = ${workspace}`,
  'a random row of any workspace': `select k.workspace_id, k.id, (select naam from app.klanten order by random() limit 1) x from app.klanten k where k.workspace_id = ${workspace}`,
  'a condition on the name of the session': `select k.workspace_id, k.id from app.klanten k where k.workspace_id = ${workspace} or current_setting('application_name') <> 'gateway-check'`,
  'a comparison that an outer join does not enforce': `select k.workspace_id, k.id from app.klanten k left join app.installaties i on i.klant_id = k.id and i.workspace_id = k.workspace_id and k.workspace_id = ${workspace}`,
  'a comparison that an outer join to a smaller table does not enforce': `select i.workspace_id, i.id, k.naam from app.installaties i left join app.klanten k on k.id = i.klant_id and k.workspace_id = i.workspace_id and i.workspace_id = ${workspace}`,
  'a join by id of a table whose column of the workspace has another name': `select k.workspace_id, k.id, n.tekst from app.klanten k left join app.notities n on n.klant = k.id where k.workspace_id = ${workspace}`,
  'a random row of a table whose workspace another table tells': `select k.workspace_id, k.id, (select tekst from app.regels r order by random() limit 1) x from app.klanten k where k.workspace_id = ${workspace}`,
  'a window over all workspaces': `select * from (select workspace_id, id, lag(naam) over (order by id) x from app.klanten) k where k.workspace_id = ${workspace}`,
  'every workspace sees all rows as its own': `select ${workspace} as workspace_id, id from app.klanten where exists (select from app.workspaces w where w.id = (select gateway.workspace()::uuid))`,
  'a comparison with itself where no workspace is set': `select k.workspace_id, k.id from app.klanten k where k.workspace_id = coalesce(${workspace}, k.workspace_id)`,
  'rows compared with each other alone': `select k.workspace_id, k.id from app.klanten k join app.installaties i on i.workspace_id = k.workspace_id where i.id is not null and gateway.workspace() is not null`,
  'a common table expression that is kept': `with alle as materialized (select * from app.klanten) select workspace_id, id, (select count(*) from alle) n from alle where workspace_id = ${workspace}`,
  'an aggregate over all workspaces': `select k.workspace_id, k.id, (select max(naam) from app.klanten) x from app.klanten k where k.workspace_id = ${workspace}`,
  'one of two united tables': `select workspace_id, id from app.klanten where workspace_id = ${workspace} union all select ${workspace}, id from app.installaties where naam like 'x%'`,
  'any of the workspaces': `select k.workspace_id, k.id from app.klanten k where k.workspace_id in (select id from app.workspaces)`,
  'rows of any workspace decide what is shown': `select k.workspace_id, k.id from app.klanten k where k.workspace_id = ${workspace} and not exists (select from app.installaties i where i.naam = k.naam)`,
  'a part of the workspace': `select k.workspace_id, k.id from app.klanten k where left(k.workspace_id::text,1) = left(gateway.workspace(),1)`,
  'another workspace than the own': `select k.workspace_id, k.id from app.klanten k where k.workspace_id = (select max(id::text)::uuid from app.workspaces where id::text < gateway.workspace())`,
  'a function with a capital that reads as its owner': `select k.workspace_id, k.id, trial."getRows"(k.naam) x from app.klanten k where k.workspace_id = ${workspace}`,
  'such a function in a schema with a capital': `select k.workspace_id, k.id, r.x from app.klanten k cross join "Trial.s".rows() r (x) where k.workspace_id = ${workspace}`,
  'such a function with a quote, a parenthesis and other letters in its name': `select k.workspace_id, k.id, '"' || trial."a ""b('é$"(k.naam) x from app.klanten k where k.workspace_id = ${workspace}`,
  'such a function behind a name with an apostrophe': `select k.workspace_id, k.id, trial."o'k"(trial."getRows"(k.naam)) x from app.klanten k where k.workspace_id = ${workspace}`,
  'such an overload of a function': `select k.workspace_id, k.id, trial.overload(k.naam) x from app.klanten k where k.workspace_id = ${workspace}`,
  'an operator that reads as its owner': `select k.workspace_id, k.id, k.naam operator(trial.===) 'x' x from app.klanten k where k.workspace_id = ${workspace}`,
  'a cast that reads as its owner': `select k.workspace_id, k.id, k.id::trial.naam x from app.klanten k where k.workspace_id = ${workspace}`,
  'an aggregate that reads as its owner': `select k.workspace_id, k.id, (select trial.collect(l.naam) from app.landen l) x from app.klanten k where k.workspace_id = ${workspace}`,
  'such an operator in a view below': `select workspace_id, id, x from trial.below where workspace_id = ${workspace}`,
  'all workspaces but the own': `select k.workspace_id, k.id from app.klanten k where not (k.workspace_id = ${workspace})`,
};

export const walledViews: Readonly<Record<string, string>> = {
  'a part whose workspace its foreign key tells': `select k.workspace_id, k.id, (select json_agg(r.tekst order by r.id) from app.regels r where r.werkbon_id = k.id) x from app.werkbonnen k where k.workspace_id = ${workspace}`,
  'rows whose workspace their foreign key tells': `select w.workspace_id, r.id, r.tekst from app.regels r join app.werkbonnen w on w.id = r.werkbon_id where w.workspace_id = ${workspace}`,
  'a text that names a function which reads as its owner': `select k.workspace_id, k.id, trial."o'k"('it''s trial."getRows"(k.naam)' || k.naam) x from app.klanten k where k.workspace_id = ${workspace}`,
  'a table without workspaces': `select k.workspace_id, k.id, l.naam from app.klanten k left join app.landen l on l.code = k.land where k.workspace_id = (select ${workspace})`,
  'a window over each workspace': `select * from (select workspace_id, id, lag(naam) over (partition by workspace_id order by id) x from app.klanten) k where k.workspace_id = ${workspace}`,
  'counts of each workspace': `select k.workspace_id, k.id, c.n from app.klanten k left join (select workspace_id, klant_id, count(*) n from app.installaties group by 1,2) c on c.workspace_id = k.workspace_id and c.klant_id = k.id where k.workspace_id = ${workspace}`,
  'counts by the foreign key': `select k.workspace_id, k.id, c.n from app.werkbonnen k left join (select werkbon_id, count(*) n from app.regels group by 1) c on c.werkbon_id = k.id where k.workspace_id = ${workspace}`,
  'the name of the workspace': `select k.workspace_id, k.id, w.naam from app.klanten k join app.workspaces w on w.id = k.workspace_id where k.workspace_id = ${workspace}`,
  'a barrier around parts and joins': `select k.* from (select w.workspace_id, w.id, (select json_agg(h) from app.werkbon_handelingen h where h.werkbon_id = w.id and h.workspace_id = w.workspace_id) x, i.naam from app.werkbonnen w left join app.installaties i on i.id = w.installatie_id and i.workspace_id = w.workspace_id) k where workspace_id = (select ${workspace}) order by id`,
  'a view of a view': `select * from (select k.* from (select w.workspace_id, w.id, (select json_agg(h) from app.werkbon_handelingen h where h.werkbon_id = w.id and h.workspace_id = w.workspace_id) x, i.naam from app.werkbonnen w left join app.installaties i on i.id = w.installatie_id and i.workspace_id = w.workspace_id) k where workspace_id = (select ${workspace}) order by id) b where id is not null`,
  'united tables': `select workspace_id, id from (select workspace_id, id from app.klanten union all select workspace_id, id from app.installaties) u where workspace_id = ${workspace}`,
  'the first of each name': `select distinct on (k.workspace_id, k.naam) k.workspace_id, k.id, k.naam from app.klanten k where k.workspace_id = ${workspace} order by 1,3`,
  'a column of another name': `select k.workspace_id, k.id, n.tekst from app.klanten k left join app.notities n on n.klant = k.id and n.ws = k.workspace_id where k.workspace_id = ${workspace}`,
  'a workspace as text': `select k.workspace_id::text as workspace_id, k.id from app.klanten k where k.workspace_id::text = gateway.workspace()`,
  'pairs in a subquery': `select k.workspace_id, k.id from app.klanten k where k.workspace_id = ${workspace} and (k.workspace_id, k.id) in (select workspace_id, klant_id from app.installaties)`,
  'no row of the same workspace': `select k.workspace_id, k.id from app.klanten k where k.workspace_id = ${workspace} and not exists (select from app.installaties i where i.klant_id = k.id and i.workspace_id = k.workspace_id)`,
  'the previous row of the workspace': `select k.workspace_id, k.id, p.naam from app.klanten k left join lateral (select naam from app.klanten p where p.workspace_id = k.workspace_id and p.id < k.id order by p.id desc limit 1) p on true where k.workspace_id = ${workspace}`,
  'an ordered subquery': `select k.workspace_id, k.id from (select * from app.klanten order by created_at, id) k where coalesce(k.workspace_id = any (array[(select ${workspace})]), false)`,
  'a key behind a key': `select w.workspace_id, w.id, (select sum(r.id) from app.regels r join app.werkbonnen w2 on w2.id = r.werkbon_id where w2.installatie_id = w.id and w2.workspace_id = w.workspace_id) from app.installaties w where w.workspace_id = ${workspace}`,
};
