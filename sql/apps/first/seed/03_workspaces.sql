-- The installers and their people: number 1 is the owner, the others go out to customers or plan the work.
insert into app.workspaces (id, naam, created_at)
select id, naam, (first_day - 60 + time '09:12:44.120945') at time zone 'Europe/Amsterdam' from seed_workspaces;

insert into app.users (id, workspace_id, naam, email, rol, created_at)
select pg_temp.seed_id('gebruiker', w.workspace, u.n), w.id, u.naam,
  lower(split_part(u.naam, ' ', 1)) || '@' || lower(replace(split_part(w.naam, ' ', 1), '.', '')) || '.example',
  case u.n when 1 then 'owner' else 'member' end,
  (w.first_day - 60 + u.n + time '10:00:00.000125') at time zone 'Europe/Amsterdam'
from seed_workspaces w
join (values
  (0, 1, 'Henk de Vries'), (0, 2, 'Marloes Kuiper'), (0, 3, 'Ronald van den Brink'), (0, 4, 'Yusuf Aydın'),
  (0, 5, 'Stefan Kowalczyk'), (0, 6, 'Esmée van ''t Hull'), (0, 7, 'Gerrit-Jan Slot'), (0, 8, 'Priya Ramdin'),
  (1, 1, 'Wietske Hoekstra'), (1, 2, 'Jelmer Bijlsma'), (1, 3, 'Anko Doornbos')
) u (workspace, n, naam) on u.workspace = w.workspace and u.n <= w.users;
