-- Version 1 on PostgreSQL; what the columns mean stands in the schema for SQLite. Flags are numbers there and here.
CREATE TABLE tenants (
    id   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name TEXT NOT NULL UNIQUE
);

CREATE TABLE sessions (
    id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant        BIGINT NOT NULL REFERENCES tenants (id),
    name          TEXT NOT NULL,
    provisional   BIGINT NOT NULL,
    level         TEXT NOT NULL,
    ended         BIGINT NOT NULL,
    entropy       DOUBLE PRECISION NOT NULL,
    loop_score    DOUBLE PRECISION NOT NULL,
    steps         BIGINT NOT NULL,
    tokens        BIGINT NOT NULL,
    cost          DOUBLE PRECISION NOT NULL,
    cumulative    DOUBLE PRECISION NOT NULL,
    cluster       TEXT NOT NULL,
    agents        TEXT NOT NULL,
    started_at    BIGINT NOT NULL,
    last_at       BIGINT NOT NULL,
    wasted_steps  BIGINT NOT NULL,
    wasted_tokens BIGINT NOT NULL,
    wasted_cost   DOUBLE PRECISION NOT NULL,
    marks         TEXT NOT NULL,
    UNIQUE (tenant, name)
);
CREATE INDEX sessions_last ON sessions (last_at, id);
CREATE INDEX sessions_level ON sessions (level, last_at, id);

CREATE TABLE steps (
    id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant      BIGINT NOT NULL,
    session     BIGINT NOT NULL,
    trace       BYTEA NOT NULL,
    parent      BYTEA,
    waiting     BIGINT NOT NULL,
    at          BIGINT NOT NULL,
    received_at BIGINT NOT NULL,
    agent       TEXT NOT NULL,
    cluster     TEXT NOT NULL,
    tool        TEXT NOT NULL,
    model       TEXT NOT NULL,
    status      TEXT NOT NULL,
    level       TEXT NOT NULL,
    open        BIGINT NOT NULL,
    wasted      BIGINT NOT NULL DEFAULT 0,
    number      BIGINT NOT NULL,
    tokens      BIGINT NOT NULL,
    cost        DOUBLE PRECISION NOT NULL,
    cumulative  DOUBLE PRECISION,
    content     BYTEA NOT NULL,
    log         TEXT NOT NULL,
    search      TSVECTOR
);
CREATE UNIQUE INDEX steps_trace ON steps (tenant, trace);
CREATE INDEX steps_session ON steps (session, id);
CREATE INDEX steps_at ON steps (at);
CREATE INDEX steps_waiting ON steps (tenant, parent) WHERE waiting = 1;
CREATE INDEX steps_open ON steps (session) WHERE open = 1;
CREATE INDEX steps_wasted ON steps (at, tenant, tokens, cost) WHERE wasted = 1;
CREATE INDEX steps_search ON steps USING gin (search);

CREATE TABLE hand_offs (
    tenant     BIGINT NOT NULL,
    cluster    TEXT NOT NULL,
    from_agent TEXT NOT NULL,
    to_agent   TEXT NOT NULL,
    count      BIGINT NOT NULL,
    latency    BIGINT NOT NULL,
    last_at    BIGINT NOT NULL,
    session    BIGINT NOT NULL,
    PRIMARY KEY (tenant, cluster, from_agent, to_agent)
);

CREATE TABLE agents (
    tenant  BIGINT NOT NULL,
    cluster TEXT NOT NULL,
    agent   TEXT NOT NULL,
    steps   BIGINT NOT NULL,
    level   TEXT NOT NULL,
    session BIGINT NOT NULL,
    last_at BIGINT NOT NULL,
    tokens  BIGINT NOT NULL,
    cost    DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (tenant, cluster, agent)
);

CREATE TABLE findings (
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    kind    TEXT NOT NULL,
    key     TEXT,
    finding TEXT NOT NULL
);
CREATE INDEX findings_session ON findings (session, id);
CREATE INDEX findings_kind ON findings (kind, session);
CREATE UNIQUE INDEX findings_key ON findings (session, key) WHERE key IS NOT NULL;

CREATE TABLE verdicts (
    id       BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session  BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    action   TEXT NOT NULL,
    enforced BIGINT NOT NULL,
    policy   TEXT NOT NULL,
    kind     TEXT NOT NULL,
    message  TEXT NOT NULL
);
CREATE INDEX verdicts_session ON verdicts (session, id);
CREATE INDEX verdicts_at ON verdicts (at);

CREATE TABLE loops (
    session BIGINT NOT NULL,
    kind    TEXT NOT NULL,
    stopped BIGINT NOT NULL,
    rounds  BIGINT NOT NULL,
    cost    DOUBLE PRECISION NOT NULL,
    at      BIGINT NOT NULL,
    PRIMARY KEY (session, kind, stopped)
);
CREATE INDEX loops_at ON loops (at);

CREATE TABLE violations (
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at      BIGINT NOT NULL,
    tenant  TEXT NOT NULL,
    agent   TEXT NOT NULL,
    sha256  TEXT NOT NULL,
    error   TEXT NOT NULL,
    details TEXT NOT NULL
);
CREATE INDEX violations_at ON violations (at);

CREATE TABLE pauses (
    session  BIGINT PRIMARY KEY,
    since    BIGINT NOT NULL,
    operator TEXT NOT NULL,
    reason   TEXT NOT NULL
);

CREATE TABLE orders (
    id      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session BIGINT NOT NULL,
    body    TEXT NOT NULL
);
CREATE INDEX orders_session ON orders (session, id);

CREATE TABLE settings (
    name  TEXT PRIMARY KEY,
    value TEXT NOT NULL
);

-- Events are kept here because every process tells all of them, in one order.
CREATE TABLE events (
    seq    BIGINT PRIMARY KEY,
    topic  TEXT NOT NULL,
    kind   TEXT NOT NULL,
    tenant TEXT,
    body   TEXT NOT NULL,
    given  TEXT
);

CREATE TABLE audit (
    seq        BIGINT PRIMARY KEY,
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
CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the audit log is append-only';
END $$;
CREATE TRIGGER audit_is_not_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON audit
FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
