-- Version 3: steps by agent and by tool; a full-text index without the lengths of texts, which only a ranking needs.
CREATE INDEX steps_agent ON steps (agent);
CREATE INDEX steps_tool ON steps (tool);

DROP TABLE search;
CREATE VIRTUAL TABLE search USING fts5 (
    intent, reasoning, tool, input, output, content = 'search_text', content_rowid = 'id', columnsize = 0
);
-- Not by `rebuild`: it may not look into a view that uses a table-valued function.
INSERT INTO search (rowid, intent, reasoning, tool, input, output)
SELECT id, intent, reasoning, tool, input, output FROM search_text;
-- Each transaction leaves a small index behind; merging eight of them at a time copies words half as often as four.
INSERT INTO search (search, rank) VALUES ('automerge', 8);
