-- What an operator, or a policy, decides about a session.
local what, name = take(), take()
local paused, held = prefix .. 'p:' .. name, prefix .. 'h:' .. name
local current = redis.call('GET', paused)
local state = current and string.sub(current, 1, 1)
if what == 'pause' and state ~= 'R' then
  local lasts, ago, tip = take_number(), take_number(), take()
  -- One that is told late may have been decided about since it began.
  if state == 'E' and tonumber(string.sub(current, 2)) > now - ago then return 2 end
  if tip ~= '' then hold_up(name, tip) end
  if state == 'W' then return 0 end
  redis.call('SET', paused, 'W' .. now - ago, 'PX', lasts)
elseif what == 'resume' and state ~= 'R' then
  -- A client that comes back with a transcript that was held is not paused for it again.
  for _, tip in ipairs(redis.call('SMEMBERS', held)) do
    redis.call('SET', approval(name, tip), '1', 'PX', SESSION_TTL)
  end
  redis.call('DEL', held)
  pause_ends(name)
elseif what == 'reject' and state == 'W' then
  redis.call('DEL', held)
  redis.call('SET', paused, 'R' .. take(), 'PX', SESSION_TTL)
elseif what == 'told' and state == 'R' then
  -- A held call was told of the rejection, so the next one is not.
  pause_ends(name)
else
  return 0
end
return 1
