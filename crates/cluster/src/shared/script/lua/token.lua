-- Token buckets. At time t, w + r / q tokens were missing; p / q tokens refill per microsecond. If
-- w and r are 0, the bucket has been full since t.
local token, kinds = {}, nil

function token.fresh(tag, rule)
  return { tag = tag, kind = 1, p = rule.p, q = rule.q, t = 0, w = 0, r = 0, held = 0 }
end

function token.load(tag, state, pos)
  local b = { tag = tag, kind = 1 }
  b.p, b.q, b.t, b.w, b.r, b.held, pos = unpack('<dddddd', state, pos)
  return b, pos
end

function token.save(b)
  return pack('<dddddddd', b.tag, 1, b.p, b.q, b.t, b.w, b.r, b.held)
end

local function missing(b, at)
  local w, r, since = b.w, b.r, at - b.t
  if w == 0 and r == 0 then return 0, 0 end
  if since <= 0 then return w, r end
  local y = since * b.p
  if y / b.q > w * 1.000001 + 2 then return 0, 0 end
  local k, rest = divide(since, b.p, b.q)
  w, r = w - k, r - rest
  if r < 0 then w, r = w - 1, r + b.q end
  if w < 0 then return 0, 0 end
  return w, r
end

-- keeps the missing amount under a changed rate; returns whether the state has changed
function token.bind(b, rule)
  if b.p == rule.p and b.q == rule.q then return end
  local w, r = missing(b, now)
  if w == 0 and r == 0 then
    b.t = min(now, b.t + math.ceil((b.w * b.q + b.r) / b.p))
  else
    local part, rest = divide(r, rule.q, b.q)
    b.t, r = now, part + (rest > 0 and 1 or 0)
    if r >= rule.q then w, r = w + 1, r - rule.q end
  end
  b.p, b.q, b.w, b.r = rule.p, rule.q, w, r
  return true
end

function token.check(b, rule, need, at, ahead)
  if need > rule.limit then return NEVER end
  local held = b.held + ahead
  local w, r = need + held + rule.mw - rule.limit, rule.mr
  if held > 0 and (w > 0 or w == 0 and r > 0) then return UNKNOWN end
  w, r = w + b.w, r + b.r
  local x = w * b.q + r
  if x <= 0 then return 0 end
  local k, rest
  if x < EXACT then
    if x <= (at - b.t) * b.p then return 0 end
    k, rest = 0, x
  else
    if x / b.p > FAR then return b.t + FAR end
    k, rest = divide(w, b.q, b.p)
    rest = rest + r
  end
  local time = b.t + k + ceiling(rest, b.p)
  if time <= at then return 0 end
  return time
end

function token.take(b, _, amount, at)
  if at > b.t then
    b.w, b.r = missing(b, at)
    b.t = at
  end
  b.w = min(b.w + amount, FAR)
end

local function refund(b, amount, sent)
  local w, r = missing(b, now)
  if w == 0 and r == 0 then return end
  local since = max(now - sent, 0)
  if since * b.p / b.q > amount * 1.000001 + 2 then return end
  local k, rest = divide(since, b.p, b.q)
  amount = amount - k
  if rest > 0 then amount, rest = amount - 1, b.q - rest end
  b.t = now
  if amount < 0 then
    b.w, b.r = w, r
    return
  end
  w, r = w - amount, r - rest
  if r < 0 then w, r = w - 1, r + b.q end
  if w < 0 then w, r = 0, 0 end
  b.w, b.r = w, r
end

function token.correct(b, rule, sent, taken, actual)
  if actual > taken then
    token.take(b, rule, actual - taken, now)
  else
    refund(b, taken - actual, sent)
  end
end

function token.used(b, _, at)
  local w, r = missing(b, at)
  return w + (r > 0 and 1 or 0)
end

function token.available(b, rule)
  local w, r = missing(b, now)
  w, r = rule.limit - rule.mw - w, -rule.mr - r
  return floor(w - b.held + r / b.q)
end

-- returns the part of an amount, used at a time, that has not refilled yet
function token.outstanding(b, _, amount, at)
  return amount - min(floor((now - at) * b.p / b.q), amount)
end

-- returns the sum of what counts of these uses, and the time of the latest
local function outstanding(b, rule, uses)
  local sum, at = 0, 0
  for _, use in ipairs(uses) do
    sum, at = sum + kinds[b.kind].outstanding(b, rule, use.amount, use.at), max(at, use.at)
  end
  return sum, at
end

function token.restore(b, rule, uses, was)
  local before, amount = outstanding(b, rule, was), outstanding(b, rule, uses)
  token.correct(b, rule, now, before, amount)
end

-- returns when the bucket would be full if the held amount were charged now
function token.empty_at(b, rule)
  local rest = b.held * b.q + (rule and rule.mw * b.q + rule.mr or 0)
  local full = b.t + (b.w * b.q + b.r) / b.p
  return max(full, b.held > 0 and now or 0) + rest / b.p
end

function token.move(b, by)
  b.t = b.t + by
end
