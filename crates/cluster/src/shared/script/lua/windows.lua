-- Windows anchored at first use; they never hold amounts. 'late' counts steps of 8388.608 us by
-- which the provider's window may have started later.
local anchored = {}

function anchored.fresh(tag, rule)
  local b = { tag = tag, kind = 4, held = 0, start = 0, sum = 0, late = 0, started = 0 }
  b.window, b.margin = rule.window, rule.margin
  return b
end

function anchored.load(tag, state, pos)
  local b = { tag = tag, kind = 4, held = 0 }
  b.window, b.margin, b.start, b.sum, b.late, b.started, pos = unpack('<dddddd', state, pos)
  return b, pos
end

function anchored.save(b)
  return pack('<dddddddd', b.tag, 4, b.window, b.margin, b.start, b.sum, b.late, b.started)
end

function anchored.bind(b, rule)
  b.window, b.margin = rule.window, rule.margin
end

local function ends(b)
  return b.start + ceiling(b.late * 8388608, 1000) + b.window + b.margin
end

local function is_over(b, at)
  return b.started == 0 or at >= ends(b)
end

function anchored.check(b, rule, need, at, ahead)
  if need > rule.limit then return NEVER end
  if is_over(b, at) then
    if need + ahead <= rule.limit then return 0 end
    return UNKNOWN
  end
  local open = at <= b.start or at - b.start < b.window - b.margin
  if open and b.sum + need + ahead <= rule.limit then return 0 end
  return ends(b)
end

function anchored.take(b, _, amount, at)
  if is_over(b, at) then
    b.start, b.sum, b.late, b.started = at, amount, 0, 1
  else
    b.sum = b.sum + amount
  end
end

local function add_to_window(b, rule, amount, at)
  if b.started == 1 and at < b.start then
    if b.start - at >= b.window then return end
    b.start = at
  end
  anchored.take(b, rule, amount, at)
end

function anchored.correct(b, rule, sent, taken, actual)
  if taken == 0 then return add_to_window(b, rule, actual, sent) end
  if b.started == 1 and sent >= b.start then b.sum = max(b.sum - taken, 0) + actual end
end

function anchored.refund(b, taken, sent)
  if b.started == 1 and sent >= b.start then b.sum = max(b.sum - taken, 0) end
  local later = sent - b.start
  if is_over(b, now) or later < 0 or later * 1000 > b.late * 8388608 then return end
  b.started = b.sum > 0 and 1 or 0
  local late = min(max(now - b.start, 0), b.window)
  b.late = max(ceiling(late * 1000, 8388608), b.late)
end

function anchored.used(b, _, at)
  return is_over(b, at) and 0 or b.sum
end

function anchored.available()
  return 0
end

function anchored.outstanding(b, _, amount, at)
  return at + b.window + b.margin > now and amount or 0
end

-- returns the start of the window and its usage, as the caller reads them
function anchored.uses(b)
  if is_over(b, now) or b.sum == 0 then return pack('<d', 0) end
  return pack('<ddd', 1, b.start + ceiling(b.late * 8388608, 1000), b.sum)
end

-- replaces what was restored before; the current window is that of the uses, which began with the first of them
function anchored.restore(b, rule, uses, was)
  b.sum = max(b.sum - outstanding(b, rule, was), 0)
  for _, use in ipairs(uses) do add_to_window(b, rule, use.amount, use.at) end
end

function anchored.empty_at(b)
  return b.started == 1 and ends(b) or 0
end

function anchored.move(b, by)
  b.start = b.start + by
end

-- Windows of a clock or a calendar: usage of the window that contains 'at' and
-- ends at 'to'. The rule contains pairs of start and length.
local grid = {}

function grid.fresh(tag)
  return { tag = tag, kind = 5, held = 0, at = 0, sum = 0, to = 0 }
end

function grid.load(tag, state, pos)
  local b = { tag = tag, kind = 5 }
  b.held, b.at, b.sum, b.to, pos = unpack('<dddd', state, pos)
  return b, pos
end

function grid.save(b)
  return pack('<dddddd', b.tag, 5, b.held, b.at, b.sum, b.to)
end

local function window_at(rule, at)
  local from, length = 0, rule[1]
  for i = 1, #rule, 2 do
    if rule[i] > at then break end
    from, length = rule[i], rule[i + 1]
  end
  local start = at - fmod(at - from, length)
  return start, start + length
end

function grid.used(b, rule, at)
  return b.at >= window_at(rule, at) and b.sum or 0
end

function grid.check(b, rule, need, at, ahead)
  if need > rule.limit then return NEVER end
  local available, margin = rule.limit - need - b.held - ahead, rule.margin
  if available < 0 then return UNKNOWN end
  local full = grid.used(b, rule, at) > available
  local start, till = window_at(rule, full and max(at, b.at) or at)
  if full or at >= till - margin then return till + margin end
  if at < start + margin then return start + margin end
  return 0
end

function grid.take(b, rule, amount, at)
  local start, till = b.to, b.to
  if rule then start, till = window_at(rule, at) elseif at < b.to then start = 0 end
  b.sum = (b.at >= start and b.sum or 0) + amount
  b.at, b.to = max(b.at, at), max(b.to, till)
end

function grid.correct(b, rule, sent, taken, actual)
  if sent < window_at(rule, b.at) then return end
  b.sum = max(grid.used(b, rule, sent) - taken, 0) + actual
  local _, till = window_at(rule, sent)
  b.at, b.to = max(b.at, sent), max(b.to, till)
end

function grid.available(b, rule)
  if grid.check(b, rule, 0, now, 0) > 0 then return 0 end
  return rule.limit - grid.used(b, rule, now) - b.held
end

function grid.outstanding(_, rule, amount, at)
  return at >= window_at(rule, now) and amount or 0
end

function grid.restore(b, rule, uses, was)
  local before = outstanding(b, rule, was)
  local amount, at = outstanding(b, rule, uses)
  if amount ~= before then grid.correct(b, rule, at, before, amount) end
end

function grid.empty_at(b, rule)
  local _, till = nil, 0
  if rule and b.held > 0 then _, till = window_at(rule, now) end
  return b.sum > 0 and max(b.to, b.at, till) or till
end

function grid.move(b, by)
  b.at, b.to = b.at + by, b.to + by
end

grid.bind = nothing
