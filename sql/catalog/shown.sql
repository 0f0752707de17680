-- The columns of the view by name, and the columns of the relations below it that they show, as the rules of the views say.
shown (relation, number, name) as (
  select attrelid, attnum, attname from pg_attribute where attrelid = '{view}'::regclass and attnum > 0
  union
  select entry[3]::oid, entry[4]::smallint, shown.name
  from shown join pg_attribute a on a.attrelid = shown.relation and a.attnum = shown.number
    join pg_rewrite r on r.ev_class = shown.relation
    cross join regexp_matches(r.ev_action::text, ':resno (\d+) :resname (\S+) :ressortgroupref \d+ :resorigtbl (\d+) :resorigcol (\d+)', 'g') entry
  where entry[1] = shown.number::text and entry[2] = a.attname::text
)
