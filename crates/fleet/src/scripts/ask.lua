-- Everything that a request must know and change before it goes out, in one step that nobody interrupts.

-- Whoever goes on from an answer comes again when that is known: it may have been given elsewhere a moment ago.
local awaited = take()
if awaited ~= '' and redis.call('EXISTS', prefix .. 'e:' .. awaited) == 0 then return {} end

-- Whose run is it? Links and tails are hashes side by side.
local name, tip, anchor = take(), take(), take()
local links, tails = take(), take()
local known_key, known_account, known_name = take(), take(), take()

local HASH = 16
local function hash_at(list, at)
  return string.sub(list, at * HASH + 1, at * HASH + HASH)
end
local function name_of(session_key)
  if session_key == anchor and name ~= '' then return name end
  if session_key == known_account and known_name ~= '' then return known_name end
  return string.format('lb-%02x%02x%02x%02x%02x%02x%02x%02x', string.byte(session_key, 1, 8))
end

-- Some of the keys of ends, from the newest on.
local STRIDE = 4
local function add_ends(keys, list, from)
  for at = from, math.min(from + STRIDE, #list / HASH) - 1 do keys[#keys + 1] = prefix .. 'e:' .. hash_at(list, at) end
  return keys
end
-- Most runs are known to whoever asks, and ended a few messages ago.
local probable = known_key ~= '' and known_key or anchor
local probable_account = known_key ~= '' and known_account or anchor
local probable_name = name_of(probable_account)
fetch(add_ends({ approval(probable_name, tip), prefix .. 's:' .. probable, prefix .. 'p:' .. probable_name }, links, 0))

-- The newest of these links at which something known ended, and whose it was.
local function find(list)
  for from = 0, #list / HASH - 1, STRIDE do
    local keys = add_ends({}, list, from)
    if fetched[keys[1]] == nil then fetch(keys) end
    for offset, key in ipairs(keys) do
      if fetched[key] then return hash_at(list, from + offset - 1), fetched[key] end
    end
  end
end

-- `given` is what clients call the account, where they have a name for it.
local key, account, given
if name ~= '' then
  key, account, given = anchor, anchor, name
else
  local link, owner = find(links)
  if link then
    local session = load_session(owner)
    account, given = session and session.a or owner, session and session.n
    local is_newest = not session or session.t[1] == link or session.w == link
    -- What leaves an earlier end behind is a fork: a session of its own, on the same account.
    key = (link == tip or is_newest) and owner or tip
  else
    local _, compacted = find(tails)
    if compacted then
      local session = load_session(compacted)
      key, account = compacted, session and session.a or compacted
    elseif known_key ~= '' then
      key, account = known_key, known_account
    else
      key, account = anchor, anchor
    end
  end
end

local session = load_session(key)
local is_new = not session
if not given then
  given = session and session.n or account == known_account and known_name ~= '' and known_name or nil
end
if is_new then
  session = { a = account, t = { tip }, f = tip }
else
  account = session.a
  local tips, is_known = session.t, false
  for _, earlier in ipairs(tips) do is_known = is_known or earlier == tip end
  if not is_known then
    table.insert(tips, 1, tip)
    if #tips > 3 then redis.call('DEL', prefix .. 'e:' .. table.remove(tips)) end
  end
end
ends_at(tip, key)
if tails ~= '' then ends_at(hash_at(tails, 0), key) end

session.n = given
local account_name = given or name_of(account)

-- What did it do before?
local is_first, after, left = session.f == tip and 1 or 0, 0, 0
local shows = take_number()
local thread = shows == 2 and take()
local is_loop = shows > 0
if is_loop then
  -- Whoever asks may remember what was lost here. What was before another refusal is over.
  local refused, lasts, chance = take(), 0, 0
  if refused ~= '' then lasts, chance = take_number(), take_number() end
  local counts_here = not session.r or session.r[1] == refused
  if refused ~= '' and not session.r then
    session.r = { refused, now + lasts, chance > 0 }
    if is_new and chance == 1 and refused ~= tip then session.t[2] = refused end
  end
  for _ = 1, take_number() do
    local identity, kept = take(), take_number()
    if counts_here then strike(session, identity, kept) end
  end
end
if is_loop and session.r and session.r[1] == tip then
  if session.r[2] > now then
    after, left = 1, session.r[2] - now
  elseif not session.r[3] then
    session.r[3] = true
    after = 2
  end
end
-- Whoever goes round once more right after the last chance has used it up.
local is_used_up = session.r and session.r[3] and session.r[1] ~= tip and session.t[2] == session.r[1]
local strikes = {}
for at = 1, take_number() do
  local identity, shown = take(), take_number()
  -- What is refused again shows nothing new, and what it showed before is forgotten.
  strikes[at] = after == 1 and shown or is_used_up and 4294967295 or strike(session, identity, shown)
end
save_session(key, session)

-- Is it paused?
local pause = get(prefix .. 'p:' .. account_name)
local paused_name = account_name
if key ~= account and (not pause or string.sub(pause, 1, 1) == 'E') then
  local own = get(prefix .. 'p:' .. name_of(key))
  if own then pause, paused_name = own, name_of(key) end
end
local how = pause and string.sub(pause, 1, 1)
if how == 'R' then
  -- Nobody was waiting when it was rejected, so this is the call that is told.
  pause_ends(paused_name)
elseif how then
  if how == 'W' then hold_up(paused_name, tip) end
  pause = how .. (now - tonumber(string.sub(pause, 2)))
end
if pause and paused_name ~= account_name then pause = string.lower(string.sub(pause, 1, 1)) .. string.sub(pause, 2) end
local is_approved = get(approval(account_name, tip)) or key ~= account and get(approval(name_of(key), tip))

-- How often was it sent?
local counts = {}
for at = 1, take_number() do
  local window_key, by_session, window, id, once = take(), take() == '1', take_number(), take(), take() == '1'
  local most = take_number()
  if by_session then window_key = window_key .. account_name end
  local seen, flying = prefix .. 'w:' .. window_key, prefix .. 'f:' .. window_key
  local counted = true
  if once then
    redis.call('ZREMRANGEBYSCORE', flying, '-inf', now - 600000)
    counted = redis.call('ZCARD', flying) == 0
    redis.call('ZADD', flying, now, id)
    redis.call('PEXPIRE', flying, 600000)
  end
  if counted then
    redis.call('ZADD', seen, now, id)
    redis.call('PEXPIRE', seen, window)
  end
  counts[at] = redis.call('ZCOUNT', seen, '(' .. now - window, '+inf')
  if counts[at] > 1 and counted then
    redis.call('ZREMRANGEBYSCORE', seen, '-inf', now - window)
    if counts[at] > most then redis.call('ZREMRANGEBYRANK', seen, 0, counts[at] - most - 1) end
  end
  -- One beside another that is on its way fares as that one does.
  if not counted then counts[at] = -math.max(counts[at], 1) end
end

-- Does it fit into its budgets? All of it is reserved, or nothing.
local charges, fits = {}, true
for at = 1, take_number() do
  local counter_key, by_session, window = take(), take() == '1', take_number()
  if by_session then counter_key = counter_key .. account_name end
  local charge = { key = prefix .. 'b:' .. counter_key, window = window }
  charge.amount, charge.stops, charge.estimate, charge.stages = take_number(), take() == '1', take_number(), take_list()
  for _, earlier in ipairs(charges) do
    if earlier.key == charge.key then charge.counter = earlier.counter end
  end
  charge.counter = charge.counter or load_counter(charge.key, window)
  local used = charge.counter.u
  -- What is pending of this very request counts, too.
  for _, earlier in ipairs(charges) do
    if earlier.key == charge.key then used = used + earlier.estimate end
  end
  charge.used = used
  local over = used >= charge.amount or charge.estimate > charge.amount - used
  if over and charge.stops then fits = false end
  local wanted = math.max(charge.estimate, 1)
  if wanted > charge.amount then
    charge.reset = window
  else
    charge.reset = window > 0 and until_left(charge.counter, used + wanted - charge.amount, window) or 0
  end
  charges[at] = charge
end
local told, MAX_EXACT = {}, 2 ^ 53
for _, charge in ipairs(charges) do
  local stage = 0
  if fits then
    count(charge.counter, charge.estimate, charge.window, now)
    for number, from in ipairs(charge.stages) do
      if charge.counter.u >= tonumber(from) then stage = number end
    end
    if stage > charge.counter.a then
      charge.counter.a, charge.counter.t = stage, now
    else
      stage = 0
    end
    save_counter(charge.key, charge.counter, charge.window)
  end
  -- In digits, however much it is: an exponent could not be read.
  told[#told + 1] = { string.format('%.0f', math.min(charge.used, MAX_EXACT)), charge.reset, stage }
end

local answer = {
  key, account, is_new and 1 or 0, is_first, after, left, strikes, pause or '', is_approved and 1 or 0, counts, fits and 1 or 0, told,
  now, given or '',
}
-- What led to the answer that the request names instead of repeating it. Its loops are known only with that.
if thread then
  answer[15] = redis.call('GET', prefix .. 'v:' .. thread)
  answer[16] = session.k or {}
end
return answer
