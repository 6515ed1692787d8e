-- What is left to write when a request is over, or when its verdict is known; that its attempts are over needs no script.

-- What is written again, since it is not known whether it was, counts once.
local number = take()
if not redis.call('SET', prefix .. 'd:' .. number, 1, 'NX', 'PX', 600000) then return {} end

-- Attempts that were made while nobody could be asked.
for _ = 1, take_number() do
  local seen, window, id, ago = prefix .. 'w:' .. take(), take_number(), take(), take_number()
  if ago < window then
    redis.call('ZADD', seen, now - ago, id)
    redis.call('PEXPIRE', seen, window)
  end
end

-- What was reserved, and what was really used. What was estimated too low counts from now on.
local excesses = {}
for index = 1, take_number() do
  local key, window, estimate, actual, at = prefix .. 'b:' .. take(), take_number(), take_number(), take_number(), take_number()
  local limit, ago = tonumber(take()), take_number()
  local counter = load_counter(key, window)
  local late, is_kept = math.max(0, actual - estimate), at >= (counter.s or 0)
  if at == 0 then
    -- Nobody could be asked, so nothing was reserved.
    if window > 0 and ago >= window then late = 0 end
  elseif is_kept then
    take_back(counter, math.max(0, estimate - actual), at, window)
  elseif window == 0 or now - at < window then
    -- The count was lost in between, and with it the estimate.
    late = actual
  end
  if late > 0 then count(counter, late, window, now - ago) end
  if is_kept or late > 0 then save_counter(key, counter, window) end
  -- Where nobody could be asked, more may have been spent than there was.
  excesses[index] = limit and math.max(0, math.min(late, counter.u - limit)) or 0
end

-- A transcript that was refused. When it changes, the session is judged by what it shows then.
local refused = take()
if refused ~= '' then
  local account, tip, lasts = take(), take(), take_number()
  local session = session_of(refused, account, tip)
  session.r, session.k = { tip, now + lasts, false }, nil
  save_session(refused, session)
end

-- Loops that were found only after the session had been asked about.
local struck = take()
if struck ~= '' then
  local session = session_of(struck, take(), take())
  for _ = 1, take_number() do
    local identity, shown = take(), take_number()
    strike(session, identity, shown)
  end
  save_session(struck, session)
end

-- An answer that the next request will name instead of repeating what led to it.
local answered = take()
if answered ~= '' then
  local answer, window = take(), take()
  local session = load_session(answered)
  if session then
    session.w = answer
    -- Of each session the windows of its last answers are kept: few clients go back further.
    if window ~= '' then
      local kept = { answer }
      for _, earlier in ipairs(session.v or {}) do
        if earlier ~= answer then
          if #kept < 4 then kept[#kept + 1] = earlier else redis.call('DEL', prefix .. 'v:' .. earlier) end
        end
      end
      session.v = kept
    end
    save_session(answered, session)
  end
  if window ~= '' then redis.call('SET', prefix .. 'v:' .. answer, window, 'PX', SESSION_TTL) end
  ends_at(answer, answered)
end
return excesses
