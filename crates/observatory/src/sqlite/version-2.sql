-- Version 2: traffic of the gateway (steps that are completed later, verdicts), what loops burned, kinds of findings.
ALTER TABLE sessions ADD COLUMN wasted_steps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN wasted_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN wasted_cost REAL NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN marks TEXT NOT NULL DEFAULT '{}';  -- last scores, open alert, last verdict: JSON

CREATE INDEX sessions_level ON sessions (level, last_at, id);

ALTER TABLE steps ADD COLUMN open INTEGER NOT NULL DEFAULT 0;      -- 1 while its result has not come
ALTER TABLE steps ADD COLUMN wasted INTEGER NOT NULL DEFAULT 0;    -- 1 for a redundant repeat
ALTER TABLE steps ADD COLUMN number INTEGER NOT NULL DEFAULT 0;    -- its place in its session, from 1 on
UPDATE steps SET number = placed.number
FROM (SELECT id, row_number() OVER (PARTITION BY session ORDER BY id) AS number FROM steps) AS placed
WHERE placed.id = steps.id;
CREATE INDEX steps_open ON steps (session) WHERE open = 1;
CREATE INDEX steps_wasted ON steps (at, tenant, tokens, cost) WHERE wasted = 1;

ALTER TABLE findings ADD COLUMN kind TEXT NOT NULL DEFAULT 'entropy';
ALTER TABLE findings ADD COLUMN key TEXT;                          -- findings of one key replace each other
CREATE UNIQUE INDEX findings_key ON findings (session, key) WHERE key IS NOT NULL;
CREATE INDEX findings_kind ON findings (kind, session);

CREATE TABLE verdicts (
    id       INTEGER PRIMARY KEY,
    session  INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    action   TEXT NOT NULL,
    enforced INTEGER NOT NULL,
    policy   TEXT NOT NULL,
    kind     TEXT NOT NULL,
    message  TEXT NOT NULL
);
CREATE INDEX verdicts_session ON verdicts (session, id);
CREATE INDEX verdicts_at ON verdicts (at);

CREATE TABLE loops (
    session INTEGER NOT NULL,
    kind    TEXT NOT NULL,
    stopped INTEGER NOT NULL,      -- 1: refused or held; 0: it would have been, and went on
    rounds  INTEGER NOT NULL,      -- rounds that went on from there
    cost    REAL NOT NULL,         -- what a round of it costs
    at      INTEGER NOT NULL,
    PRIMARY KEY (session, kind, stopped)
) WITHOUT ROWID;
CREATE INDEX loops_at ON loops (at);

ALTER TABLE agents ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE agents ADD COLUMN cost REAL NOT NULL DEFAULT 0;
ALTER TABLE hand_offs ADD COLUMN session INTEGER NOT NULL DEFAULT 0;  -- the last one that used it
ALTER TABLE violations ADD COLUMN agent TEXT NOT NULL DEFAULT '';
CREATE INDEX violations_at ON violations (at);
