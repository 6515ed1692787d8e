-- KEYS[1] begins every key of the tenant and carries its tag, so that all of them are in one slot.
local prefix = KEYS[1]
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

-- How long a session, its ends and what it has used are kept after their last use.
local SESSION_TTL = 7 * 24 * 3600 * 1000

local position = 0
local function take()
  position = position + 1
  return ARGV[position]
end
local function take_number()
  return tonumber(take())
end
local function take_list()
  local list = {}
  for at = 1, take_number() do list[at] = take() end
  return list
end

-- A call costs several times what is done in it: what is probably needed is fetched at once, and taken from here.
local fetched = {}
local function fetch(keys)
  for at, value in ipairs(redis.call('MGET', unpack(keys))) do fetched[keys[at]] = value end
end
local function get(key)
  local value = fetched[key]
  if value == nil then value = redis.call('GET', key) end
  return value
end

local function load_session(key)
  local raw = get(prefix .. 's:' .. key)
  return raw and cmsgpack.unpack(raw)
end
local function save_session(key, session)
  redis.call('SET', prefix .. 's:' .. key, cmsgpack.pack(session), 'PX', SESSION_TTL)
end
-- The strikes of a loop: the higher of what is shown and what is kept, which is kept then.
local function strike(session, identity, shown)
  session.k = session.k or {}
  for _, known in ipairs(session.k) do
    if known[1] == identity then
      known[2] = math.max(known[2], shown)
      return known[2]
    end
  end
  if #session.k >= 8 then table.remove(session.k, 1) end
  session.k[#session.k + 1] = { identity, shown }
  return shown
end
-- A transcript that a session's pause holds up, and where it is kept that somebody has let it go on.
local function hold_up(name, tip)
  local held = prefix .. 'h:' .. name
  redis.call('SADD', held, tip)
  redis.call('PEXPIRE', held, SESSION_TTL)
end
-- A pause is over. That is kept: where nothing is known of a pause, those that know of one hold it.
local function pause_ends(name)
  redis.call('SET', prefix .. 'p:' .. name, 'E' .. now, 'PX', SESSION_TTL)
end
local function approval(name, tip)
  return prefix .. 'o:' .. name .. ':' .. tip
end
local function ends_at(link, key)
  redis.call('SET', prefix .. 'e:' .. link, key, 'PX', SESSION_TTL)
end
-- A session that somebody knows, also where it began while nobody could be asked, or was lost. What is known of it is not
-- the first of it.
local function session_of(key, account, tip)
  local session = load_session(key)
  if not session then
    session = { a = account, t = { tip }, f = '' }
    ends_at(tip, key)
  end
  return session
end
