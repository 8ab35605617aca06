local DONE, REFUSED, LEASED, STALE, LOST, GONE = 0, 1, 2, 3, 4, 5
-- how long an ended reservation, and an executed charge or reset, is remembered
local TOMB, DONE_ONCE = 5 * SECOND, 60 * SECOND
local parts = {}

local function answer(code, part, rule, wait)
  local out = { pack('<ddddd', code, now, part or 0, rule or 0, wait or 0) }
  if code == STALE or code == LOST then return out[1] end
  for _, p in ipairs(parts) do
    out[#out + 1] = pack('<d', p.born)
    for _, r in ipairs(p.rules) do
      out[#out + 1] = pack('<dd', r.of.used(r.bucket, r, now), r.bucket.held)
    end
  end
  if code == LEASED then
    for _, p in ipairs(parts) do
      for _, r in ipairs(p.rules) do out[#out + 1] = pack('<d', r.granted or 0) end
    end
  end
  return table.concat(out)
end

local function finish(code, part, rule, wait)
  for _, p in ipairs(parts) do
    if p.dirty or p.put or p.del then save(p) end
  end
  if wait == UNKNOWN then wait = -1 elseif wait == NEVER then wait = -2 elseif wait then wait = wait - now end
  return answer(code, part, rule, wait)
end

local function is_tomb(part)
  return part.mine and #part.mine == 8
end

local function keep(part, value, till)
  part.put, part.keep, part.next = value, max(part.keep or 0, till), min(part.next, till)
end

-- returns the longest wait among all rules, at a time
local function shortest_of(at)
  local longest, which, where = 0, 0, 0
  for i, part in ipairs(parts) do
    if not part.mine then
      for j, rule in ipairs(part.rules) do
        if rule.amount > 0 then
          local wait = rule.of.check(rule.bucket, rule, rule.need, at, rule.bucket.ahead or 0)
          if wait > longest then longest, which, where = wait, i, j end
        end
      end
    end
  end
  return longest, which, where
end

local function closes()
  for _, part in ipairs(parts) do
    for _, rule in ipairs(part.rules) do
      if rule.kind == 4 or rule.kind == 5 and rule.margin > 0 then return true end
    end
  end
end

local function shortfall()
  local wait, part, rule = shortest_of(now)
  if wait == 0 or wait >= UNKNOWN or not closes() then return wait, part, rule end
  -- a window that is open now may be closed by then
  for _ = 1, 64 do
    local later, p, r = shortest_of(wait)
    if later <= wait then break end
    wait, part, rule = later, p, r
    if wait >= UNKNOWN then break end
  end
  return wait, part, rule
end

local function reserve()
  for _, part in ipairs(parts) do
    if is_tomb(part) then return finish(GONE) end
    look_ahead(part)
  end
  local wait, which, where = shortfall()
  if wait > 0 then
    for i, part in ipairs(parts) do
      if flag == 1 and i == which and wait < NEVER then queue_up(part, wait) else leave_queue(part) end
    end
    return finish(REFUSED, which - 1, where - 1, wait)
  end
  for _, part in ipairs(parts) do
    leave_queue(part)
    if not part.mine then
      local out = { pack('<dd', now, now + ttl) }
      for _, rule in ipairs(part.rules) do
        local b, amount = rule.bucket, rule.amount
        if amount > 0 then
          if rule.holds == 1 then
            b.held = b.held + amount
            amount = -amount
          else
            rule.of.take(b, rule, amount, now)
          end
          out[#out + 1] = pack('<dd', rule.tag, amount)
        end
      end
      keep(part, table.concat(out), now + ttl)
    end
  end
  return finish(DONE)
end

-- returns the amount of a reservation in each bucket, and when it was sent
local function reserved(value)
  local had, sent, p = {}, unpack('<d', value), 17
  while p <= #value do
    local tag, amount
    tag, amount, p = unpack('<dd', value, p)
    had[tag] = amount
  end
  return had, sent
end

-- a restored reservation was charged at an unknown time: only charge more, never refund
local function correct(rule, sent, was, actual)
  if sent > 0 then
    rule.of.correct(rule.bucket, rule, sent, was, actual)
  elseif actual > was then
    rule.of.take(rule.bucket, rule, actual - was, now)
  end
end

local function settle(part)
  local had, sent = reserved(part.mine)
  for _, rule in ipairs(part.rules) do
    local b, was, actual = rule.bucket, had[rule.tag], rule.amount
    had[rule.tag] = nil
    if was and was < 0 or not was and rule.holds == 1 then
      b.held = max(b.held + (was or 0), 0)
      if actual > 0 then rule.of.take(b, rule, actual, now) end
    elseif (was or 0) ~= actual then
      correct(rule, sent, was or 0, actual)
    end
  end
  for tag, amount in pairs(had) do let_go(part, pack('<dddd', 0, 0, tag, amount), true) end
end

local function release(part)
  local had, sent = reserved(part.mine)
  for _, rule in ipairs(part.rules) do
    local b, was = rule.bucket, had[rule.tag]
    if was and was > 0 then
      if rule.kind == 4 then
        first.give_back(b, was, sent)
      else
        correct(rule, sent, was, 0)
      end
    end
  end
  let_go(part, part.mine, false)
end

local function finish_one()
  local code = GONE
  for _, part in ipairs(parts) do
    leave_queue(part)
    if part.mine and not is_tomb(part) then
      if verb == 3 then release(part) else settle(part) end
      part.del, code = true, DONE
    end
    if flag == 1 and not is_tomb(part) then keep(part, pack('<d', now + TOMB), now + TOMB) end
  end
  return finish(code)
end

-- restores a reservation: holds concurrency slots again; all other amounts are charged already
local function put_back(part)
  local out = { pack('<dd', 0, 0) }
  for _, rule in ipairs(part.rules) do
    local b, amount = rule.bucket, rule.amount
    if rule.kind == 2 then
      b.held = b.held + amount
      amount = -amount
    end
    if amount ~= 0 then out[#out + 1] = pack('<dd', rule.tag, amount) end
  end
  part.mine = table.concat(out)
end

local function renew()
  local code = DONE
  for _, part in ipairs(parts) do
    if flag == 1 and not part.mine then put_back(part) end
    if part.mine and not is_tomb(part) then
      keep(part, sub(part.mine, 1, 8) .. pack('<d', now + ttl) .. sub(part.mine, 17), now + ttl)
    else
      code = GONE
    end
  end
  return finish(code)
end

-- executes an operation on each part, once per id
local function once(act)
  for _, part in ipairs(parts) do
    if not part.mine then
      act(part)
      keep(part, pack('<d', now + DONE_ONCE), now + DONE_ONCE)
    end
  end
  return finish(DONE)
end

local function charge(part)
  for _, rule in ipairs(part.rules) do
    if rule.amount > 0 then rule.of.take(rule.bucket, rule, rule.amount, now) end
  end
end

local function reset(part)
  for i, b in ipairs(part.list) do
    local new = kinds[b.kind].fresh(b.tag, b.rule or b)
    new.held, new.rule, part.list[i] = b.held, b.rule, new
    if b.rule then b.rule.bucket = new end
  end
end
