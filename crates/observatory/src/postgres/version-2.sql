-- Version 2: steps by agent and by tool, the newest first.
CREATE INDEX steps_agent ON steps (agent, id);
CREATE INDEX steps_tool ON steps (tool, id);
