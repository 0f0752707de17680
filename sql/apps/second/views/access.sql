-- The schema in which the views find the app's tables.
grant usage on schema fieldops to gateway_owner;
