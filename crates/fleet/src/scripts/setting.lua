-- A setting that was changed at run time. The newest is kept, and everybody is told that there is one.
local name, value, had, origin = take(), take(), take_number(), take()
local kept = redis.call('HGET', KEYS[1], name)
local version = kept and tonumber(string.match(kept, '^%d+')) or 0
if had == 0 then
  -- Never lower than before, also when everything was lost in between.
  version = math.max(version + 1, now)
elseif had > version then
  version = had
else
  return 0
end
redis.call('HSET', KEYS[1], name, string.format('%.0f', version) .. ' ' .. value)
redis.call('XADD', KEYS[2], 'MAXLEN', '~', 10000, '*', 'from', origin, 'setting', name)
redis.call('EXPIRE', KEYS[2], 604800)
return 1
