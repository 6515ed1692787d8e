-- Version 4: words are put into the full-text index many steps at a time; a wider index counts sessions by itself.
CREATE TABLE unindexed (
    step      INTEGER PRIMARY KEY,
    -- What the index still says of the step; nothing where it does not know the step yet.
    intent    TEXT,
    reasoning TEXT,
    tool      TEXT,
    input     TEXT,
    output    TEXT
);

DROP INDEX sessions_last;
CREATE INDEX sessions_last ON sessions (last_at, id, tenant, level, ended);
