-- The schema in which the views find the app's tables.
grant usage on schema app to gateway_owner;
