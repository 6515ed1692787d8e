-- Version 5: the full-text index knows all steps up to one of them; steps by tool are only those with one, sessions by
-- level only those with a bad one.
INSERT INTO settings (name, value) SELECT 'indexed_up_to', max(id) FROM steps HAVING max(id) IS NOT NULL;

DROP INDEX sessions_level;
CREATE INDEX sessions_level ON sessions (level, last_at, id) WHERE level <> 'normal';

DROP INDEX steps_tool;
CREATE INDEX steps_tool ON steps (tool) WHERE tool <> '';
