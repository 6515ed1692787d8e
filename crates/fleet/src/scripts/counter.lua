-- The count of one key: `u` is what counts now, `b` the slots of a sliding window as (last, amount, last, amount, …),
-- `a` the stages that were announced, `t` when, `s` since when there is this count. It slides as the ledger in memory does: what was counted in a slot
-- counts until the last of it has left the window.
local SLOTS = 60

local function slot_width(window)
  return math.ceil(window / SLOTS)
end

local function load_counter(key, window)
  local raw = redis.call('GET', key)
  local counter = raw and cmsgpack.unpack(raw) or { u = 0, a = 0, t = 0, b = {}, s = now }
  if window > 0 then
    local slots, kept = counter.b, {}
    for at = 1, #slots, 2 do
      if now - slots[at] >= window then
        counter.u = math.max(0, counter.u - slots[at + 1])
      else
        kept[#kept + 1] = slots[at]
        kept[#kept + 1] = slots[at + 1]
      end
    end
    counter.b = kept
    if now - counter.t >= window then counter.a = 0 end
  end
  return counter
end

local function save_counter(key, counter, window)
  redis.call('SET', key, cmsgpack.pack(counter), 'PX', window > 0 and window or SESSION_TTL)
end

-- Counts what was used at that time, which is seldom before the newest slot.
local function count(counter, amount, window, at)
  counter.u = counter.u + amount
  if window > 0 then
    local slots, width = counter.b, slot_width(window)
    local slot, index = math.floor(at / width), #slots - 1
    while index > 0 and math.floor(slots[index] / width) > slot do index = index - 2 end
    if index > 0 and math.floor(slots[index] / width) == slot then
      slots[index] = math.max(slots[index], at)
      slots[index + 1] = slots[index + 1] + amount
    else
      table.insert(slots, index + 2, at)
      table.insert(slots, index + 3, amount)
    end
  end
end

-- Takes back a part of what was counted at that time; nothing where it has left the window already.
local function take_back(counter, amount, at, window)
  local taken = amount
  if window > 0 then
    local slots, width = counter.b, slot_width(window)
    taken = 0
    for index = #slots - 1, 1, -2 do
      if math.floor(slots[index] / width) == math.floor(at / width) then
        taken = math.min(slots[index + 1], amount)
        slots[index + 1] = slots[index + 1] - taken
        break
      end
    end
  end
  counter.u = math.max(0, counter.u - taken)
end

-- Milliseconds until so much has left the window.
local function until_left(counter, amount, window)
  local left, leaves = 0, now
  for at = 1, #counter.b, 2 do
    if counter.b[at + 1] > 0 then
      left = left + counter.b[at + 1]
      leaves = counter.b[at] + window
      if left >= amount then break end
    end
  end
  return math.max(0, leaves - now)
end
