-- The installers and their people: number 1 is the administrator.
insert into fieldops.tenants (id, title) select id, naam from seed_workspaces;

insert into fieldops.staff (id, tenant_id, full_name, email, is_admin)
select w.id * 100 + n, w.id, (array['Henk de Vries', 'Marloes Kuiper', 'Yusuf Aydın', 'Esmée van ''t Hull', 'Jelmer Bijlsma'])[1 + (n + w.workspace) % 5],
  'staff' || n || '@tenant' || w.id || '.example', n = 1
from seed_workspaces w cross join lateral generate_series(1, w.users) n;
