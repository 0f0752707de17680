-- Shared by the seeds of both reference apps: a table and functions that live for the transaction of the seed only.

-- Images made by Node: kind, number from 0, base64.
create temp table seed_signatures (kind text not null, n int not null, image text not null) on commit drop;

-- A number from 0 to size - 1, the same on every run: `salt` makes several draws for one thing differ.
create or replace function pg_temp.draw(workspace int, n int, salt int, size int) returns int immutable language sql as $$
  select ((hashint8extended(workspace * 10000000000 + n, salt) & 9223372036854775807) % size)::int
$$;

-- generate_series(1, count), but the planner is told that there are many, so that it hashes the small side of joins.
create or replace function pg_temp.numbers(count int) returns setof int immutable language plpgsql rows 1000000 as $$
begin
  return query select generate_series(1, count);
end $$;

-- A moment of a working day (06:00–20:00 Europe/Amsterdam), `share` (0 to 1) of the way through `days` days.
create or replace function pg_temp.moment(first_day date, days float8, share float8, micros int) returns timestamptz
immutable language sql as $$
  select (first_day + floor(days * share)::int + time '06:00'
          + (days * share - floor(days * share)) * interval '14 hours'
          + micros * interval '1 microsecond') at time zone 'Europe/Amsterdam'
$$;

-- When row n of `count` came into being. The first 30 % came with an import, 25 rows at the very same moment; later on
-- every hundredth to hundred-and-fourth share one too. Lists must break such ties by id.
create or replace function pg_temp.created_at(first_day date, today date, n int, count int) returns timestamptz
immutable language sql as $$
  select case
    when n <= count * 0.3 then
      (first_day - 30 + time '20:15:01.370123' + ((n - 1) / 25) * interval '1.370123 s') at time zone 'Europe/Amsterdam'
    else pg_temp.moment(first_day, today - first_day - 1,
      greatest(0, (n - case when n % 100 < 5 then n % 100 else 0 end - count * 0.3) / (count * 0.7)),
      pg_temp.draw(0, n - case when n % 100 < 5 then n % 100 else 0 end, 1, 999983))
  end
$$;
