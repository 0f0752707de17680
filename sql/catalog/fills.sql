-- May the function u, in the language l, of a trigger BEFORE INSERT set the column a? It names the column, sets the whole row, or is
-- written in another language than PL/pgSQL. `adopt` and `check` ask here alike.
(l.lanname <> 'plpgsql' or u.prosrc
  ~* ('\mnew\s*:?=|\minto\s+(strict\s+)?new\M|\mnew\."?' || regexp_replace(a.attname, '(\W)', '\\\1', 'g') || '(?!\w)'))
