-- One partition a year, eight years back to next year, and a default one for imported rows of earlier years.
-- The bounds are in UTC, so the last hour of a year in the Netherlands lies in the partition of the next.
do $$
declare
  this_year int := (select extract(year from today) from seed_workspaces where workspace = 0);
begin
  for year in this_year - 8 .. this_year + 1 loop
    execute format('create table app.logboeken_%s partition of app.logboeken for values from (%L) to (%L)',
      year, year || '-01-01 00:00:00+00', (year + 1) || '-01-01 00:00:00+00');
  end loop;
  create table app.logboeken_default partition of app.logboeken default;
end $$;
