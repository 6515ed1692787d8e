-- Version 1. A later version is a file of its own, and a database goes through all that it has not seen.
CREATE TABLE tenants (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

CREATE TABLE sessions (
    id          INTEGER PRIMARY KEY,
    tenant      INTEGER NOT NULL REFERENCES tenants (id),
    name        TEXT NOT NULL,
    provisional INTEGER NOT NULL,  -- named after a parent that has not come yet
    level       TEXT NOT NULL,     -- normal, warning, loop
    ended       INTEGER NOT NULL,
    entropy     REAL NOT NULL,
    loop_score  REAL NOT NULL,
    steps       INTEGER NOT NULL,
    tokens      INTEGER NOT NULL,
    cost        REAL NOT NULL,
    cumulative  REAL NOT NULL,     -- the largest cumulative cost that was reported
    cluster     TEXT NOT NULL,
    agents      TEXT NOT NULL,     -- a JSON array
    started_at  INTEGER NOT NULL,
    last_at     INTEGER NOT NULL,
    UNIQUE (tenant, name)
);
CREATE INDEX sessions_last ON sessions (last_at, id);

CREATE TABLE steps (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    tenant      INTEGER NOT NULL,
    session     INTEGER NOT NULL,
    trace       BLOB NOT NULL,
    parent      BLOB,
    waiting     INTEGER NOT NULL,  -- 1 while the parent has not come
    at          INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    agent       TEXT NOT NULL,
    cluster     TEXT NOT NULL,
    tool        TEXT NOT NULL,
    model       TEXT NOT NULL,
    status      TEXT NOT NULL,
    level       TEXT NOT NULL,
    tokens      INTEGER NOT NULL,
    cost        REAL NOT NULL,     -- what this step added to the cost of its session
    cumulative  REAL,              -- what it reported
    content     BLOB NOT NULL,
    log         TEXT NOT NULL
);
CREATE UNIQUE INDEX steps_trace ON steps (tenant, trace);
CREATE INDEX steps_session ON steps (session, id);
CREATE INDEX steps_at ON steps (at);
CREATE INDEX steps_waiting ON steps (tenant, parent) WHERE waiting = 1;

CREATE VIEW search_text AS
SELECT id,
       json_extract(log, '$.cognition.intent') AS intent,
       (SELECT group_concat(value, char(10)) FROM json_each(log, '$.cognition.reasoning_chain')) AS reasoning,
       json_extract(log, '$.action.tool_call') AS tool,
       json_extract(log, '$.action.tool_input') AS input,
       json_extract(log, '$.action.tool_output_summary') AS output
FROM steps;
CREATE VIRTUAL TABLE search USING fts5 (
    intent, reasoning, tool, input, output, content = 'search_text', content_rowid = 'id'
);

CREATE TABLE hand_offs (
    tenant     INTEGER NOT NULL,
    cluster    TEXT NOT NULL,
    from_agent TEXT NOT NULL,
    to_agent   TEXT NOT NULL,
    count      INTEGER NOT NULL,
    latency    INTEGER NOT NULL,   -- the sum, in milliseconds
    last_at    INTEGER NOT NULL,
    PRIMARY KEY (tenant, cluster, from_agent, to_agent)
) WITHOUT ROWID;

CREATE TABLE agents (
    tenant  INTEGER NOT NULL,
    cluster TEXT NOT NULL,
    agent   TEXT NOT NULL,
    steps   INTEGER NOT NULL,
    level   TEXT NOT NULL,
    session INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, cluster, agent)
) WITHOUT ROWID;

CREATE TABLE findings (
    id      INTEGER PRIMARY KEY,
    session INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    finding TEXT NOT NULL
);
CREATE INDEX findings_session ON findings (session, id);

CREATE TABLE violations (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    at      INTEGER NOT NULL,
    tenant  TEXT NOT NULL,
    sha256  TEXT NOT NULL,
    error   TEXT NOT NULL,
    details TEXT NOT NULL
);

CREATE TABLE pauses (
    session  INTEGER PRIMARY KEY,
    since    INTEGER NOT NULL,
    operator TEXT NOT NULL,
    reason   TEXT NOT NULL
);

CREATE TABLE orders (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    session INTEGER NOT NULL,
    body    TEXT NOT NULL
);
CREATE INDEX orders_session ON orders (session, id);

CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

CREATE TABLE audit (
    seq        INTEGER PRIMARY KEY,
    at         TEXT NOT NULL,
    operator   TEXT NOT NULL,
    action     TEXT NOT NULL,
    session_id TEXT,
    reason     TEXT,
    before     TEXT,
    after      TEXT,
    prev_hash  TEXT NOT NULL,
    hash       TEXT NOT NULL
);
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE ON audit
BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER audit_is_not_deleted BEFORE DELETE ON audit
BEGIN SELECT raise(ABORT, 'the audit log is append-only'); END;
