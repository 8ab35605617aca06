-- Sliding windows: a log of (time, amount), oldest first, and their total.
local sliding = {}

function sliding.fresh(tag, rule)
  return { tag = tag, kind = 3, span = rule.span, held = 0, total = 0, log = '' }
end

function sliding.load(tag, state, pos)
  local b, n = { tag = tag, kind = 3 }, nil
  b.span, b.held, b.total, n, pos = unpack('<dddd', state, pos)
  b.log = sub(state, pos, pos + n - 1)
  return b, pos + n
end

function sliding.save(b)
  return pack('<dddddd', b.tag, 3, b.span, b.held, b.total, #b.log) .. b.log
end

function sliding.bind(b, rule)
  b.span = rule.span
end

function sliding.check(b, rule, need, at, ahead)
  if need > rule.limit then return NEVER end
  local available = rule.limit - need - b.held - ahead
  if available < 0 then return UNKNOWN end
  local used, log, span = b.total, b.log, b.span
  local from, size, till, amount = 1, #log, 0, nil
  while used > available and from <= size do
    till, amount, from = unpack('<dd', log, from)
    used, till = used - amount, till + span
  end
  if till <= at then return 0 end
  return till
end

-- returns the position of the first live entry, and the sum of those expired before it
local function expired(b, at)
  local log, from, sum, since = b.log, 1, 0, at - b.span
  local size = #log
  while from <= size do
    local time, amount, after = unpack('<dd', log, from)
    if time > since then break end
    sum, from = sum + amount, after
  end
  return from, sum
end

local function same_part(b, last, at)
  local width = floor(b.span * 125 / 32)
  if width < 1 then width = 1 end
  local rest = fmod(fmod(fmod(fmod(last, width) * 10, width) * 10, width) * 10, width)
  return rest + (at - last) * 1000 < width
end

function sliding.take(b, _, amount, at)
  local size, last, sum = #b.log, nil, nil
  if size > 0 then
    last, sum = unpack('<dd', b.log, size - 15)
    at = max(at, last)
    local from, over = expired(b, at)
    if from > 1 then
      b.log, b.total = sub(b.log, from), b.total - over
      size = #b.log
    end
  end
  b.total = b.total + amount
  if size > 0 and (last == at or size >= 128 * 16 and same_part(b, last, at)) then
    b.log = sub(b.log, 1, size - 16) .. pack('<dd', at, sum + amount)
  else
    b.log = b.log .. pack('<dd', at, amount)
  end
end

function sliding.correct(b, rule, sent, taken, actual)
  if sent + b.span <= now then return end
  local log = b.log
  local low, high = 0, #log / 16
  while low < high do
    local middle = floor((low + high) / 2)
    if unpack('<d', log, middle * 16 + 1) < sent then low = middle + 1 else high = middle end
  end
  local from = low * 16 + 1
  if from > #log then return sliding.take(b, rule, max(actual - taken, 0), sent) end
  local time, old = unpack('<dd', log, from)
  local new = max(old - taken, 0) + actual
  b.total = b.total - old + new
  b.log = sub(log, 1, from - 1) .. pack('<dd', time, new) .. sub(log, from + 16)
end

function sliding.used(b, _, at)
  local _, over = expired(b, at)
  return b.total - over
end

function sliding.available(b, rule)
  return rule.limit - sliding.used(b, rule, now) - b.held
end

function sliding.outstanding(b, _, amount, at)
  return at + b.span > now and amount or 0
end

-- returns the times of use, as the caller reads them
function sliding.uses(b)
  local log = sub(b.log, (expired(b, now)))
  return pack('<d', #log / 16) .. log
end

-- replaces amounts that were restored before
function sliding.restore(b, _, uses, was)
  local amounts, times, log, from = {}, {}, {}, 1
  local function add(at, amount)
    if not amounts[at] then times[#times + 1], amounts[at] = at, 0 end
    amounts[at] = amounts[at] + amount
  end
  while from <= #b.log do
    local at, amount
    at, amount, from = unpack('<dd', b.log, from)
    add(at, amount)
  end
  for _, use in ipairs(uses) do add(use.at, use.amount) end
  for _, use in ipairs(was) do add(use.at, -use.amount) end
  table.sort(times)
  b.total = 0
  for _, at in ipairs(times) do
    local amount = amounts[at]
    if amount > 0 then b.total, log[#log + 1] = b.total + amount, pack('<dd', at, amount) end
  end
  b.log = table.concat(log)
end

function sliding.empty_at(b)
  if b.held > 0 then return now + b.span end
  if b.log == '' then return 0 end
  return unpack('<d', b.log, #b.log - 15) + b.span
end

function sliding.move(b, by)
  local log, from = {}, 1
  while from <= #b.log do
    local time, amount
    time, amount, from = unpack('<dd', b.log, from)
    log[#log + 1] = pack('<dd', time + by, amount)
  end
  b.log = table.concat(log)
end
