local DONE, REFUSED, LEASED, STALE, LOST, GONE, OUTDATED = 0, 1, 2, 3, 4, 5, 6
-- the time for which an ended reservation, and an executed charge or reset, is remembered
local TOMBSTONE_TTL, EXECUTED_TTL = 5 * SECOND, 60 * SECOND
local parts = {}

-- returns the state of a part after the call; if rules of other processes count, with a negative creation time
local function view(part)
  local is_limited_by_others = #part.rules > part.count
  local out = { pack('<d', is_limited_by_others and -part.created or part.created) }
  for i = 1, part.count do
    local r = part.rules[i]
    out[i + 1] = pack('<dd', r.methods.used(r.bucket, r, now), r.bucket.held)
    if part.wants_uses and r.methods.uses then out[i + 1] = out[i + 1] .. r.methods.uses(r.bucket) end
  end
  return table.concat(out)
end

-- returns a wait as the caller reads it
local function encode_wait(wait)
  if wait == UNKNOWN then return -1 elseif wait == NEVER then return -2 else return wait - now end
end

local function finish_part(part)
  if part.dirty or part.new_value or part.delete then save(part) end
  if part.freed then wake_first(part) end
  return view(part)
end

local function finish(code, part, rule, wait, earliest)
  local out = { pack('<ddddd', code, now, part or 0, rule or 0, wait and encode_wait(wait) or 0) }
  for i, p in ipairs(parts) do out[i + 1] = finish_part(p) end
  if earliest then out[#out + 1] = pack('<d', earliest) end
  return table.concat(out)
end

local function is_tombstone(part)
  return part.reservation and #part.reservation == 8
end

local function store_reservation(part, value, till)
  part.new_value, part.next = value, min(part.next, till)
  part.needed_until = max(part.needed_until or 0, till)
end

-- returns the longest wait of all rules at a time, with its part and rule
local function longest_wait(at)
  local longest, which, by = 0, 0, nil
  for i, part in ipairs(parts) do
    if not part.reservation then
      for _, rule in ipairs(part.rules) do
        if rule.amount > 0 then
          local wait = rule.methods.check(rule.bucket, rule, rule.need, at, rule.bucket.ahead or 0)
          if wait > longest then longest, which, by = wait, i, rule end
        end
      end
    end
  end
  return longest, which, by
end

-- Returns the time until the rules of a part admit the call if all that is held came back, and no earlier request took
-- any. Those of other processes don't count: they may be withdrawn.
local function earliest_wait(part)
  local longest = now
  for _, rule in ipairs(part.rules) do
    if rule.amount > 0 and not rule.of then
      local b, held = rule.bucket, rule.bucket.held
      b.held = 0
      longest = max(longest, rule.methods.check(b, rule, rule.need, now, 0))
      b.held = held
    end
  end
  return longest < UNKNOWN and longest - now or 0
end

-- returns whether a bucket can be closed at a time although it has capacity
local function has_closing_windows()
  for _, part in ipairs(parts) do
    for _, rule in ipairs(part.rules) do
      if rule.kind == 4 or rule.kind == 5 and rule.margin > 0 then return true end
    end
  end
end

-- returns when the request fits, with the part and the rule that it waits for
local function required_wait()
  local wait, part, rule = longest_wait(now)
  if wait == 0 or wait >= UNKNOWN or not has_closing_windows() then return wait, part, rule end
  -- a window that is open now may be closed at that time
  for _ = 1, 64 do
    local later, p, r = longest_wait(wait)
    if later <= wait then break end
    wait, part, rule = later, p, r
    if wait >= UNKNOWN then break end
  end
  return wait, part, rule
end

local function reserve()
  for _, part in ipairs(parts) do
    if is_tombstone(part) then return finish(GONE) end
    add_earlier_tickets(part)
  end
  local wait, which, rule = required_wait()
  if wait > 0 then
    local earliest = earliest_wait(parts[which])
    for i, part in ipairs(parts) do
      if flag == 1 and i == which and wait < NEVER then enqueue(part) else dequeue(part) end
    end
    return finish(REFUSED, which - 1, (rule.of or rule).index - 1, wait, earliest)
  end
  for _, part in ipairs(parts) do
    if not part.reservation then charge_turn(part) end
    dequeue(part)
    if not part.reservation then
      local out = { pack('<dd', now, now + ttl) }
      for _, rule in ipairs(part.rules) do
        local b, amount = rule.bucket, rule.amount
        if amount > 0 then
          if rule.holds == 1 then
            b.held = b.held + amount
            amount = -amount
          else
            rule.methods.take(b, rule, amount, now)
          end
          out[#out + 1] = pack('<dd', rule.tag, amount)
        end
      end
      store_reservation(part, table.concat(out), now + ttl)
    end
  end
  return finish(DONE)
end

-- returns the amounts of a reservation by bucket, and the time at which it was sent
local function decode_reservation(value)
  local reserved, sent, p = {}, unpack('<d', value), 17
  while p <= #value do
    local tag, amount
    tag, amount, p = unpack('<dd', value, p)
    reserved[tag] = amount
  end
  return reserved, sent
end

-- a restored reservation (sent at 0) was charged at an unknown time: charge more, never refund
local function correct(rule, sent, was, actual)
  if sent > 0 then
    rule.methods.correct(rule.bucket, rule, sent, was, actual)
  elseif actual > was then
    rule.methods.take(rule.bucket, rule, actual - was, now)
  end
end

local function settle(part)
  local reserved, sent = decode_reservation(part.reservation)
  for _, rule in ipairs(part.rules) do
    local b, was, actual = rule.bucket, reserved[rule.tag], rule.amount
    reserved[rule.tag] = nil
    if was and was < 0 or not was and rule.holds == 1 then
      b.held = max(b.held + (was or 0), 0)
      if actual > 0 then rule.methods.take(b, rule, actual, now) end
    elseif (was or 0) ~= actual then
      correct(rule, sent, was or 0, actual)
    end
  end
  for tag, amount in pairs(reserved) do drop_holds(part, pack('<dddd', 0, 0, tag, amount), true) end
end

local function release(part)
  local reserved, sent = decode_reservation(part.reservation)
  for _, rule in ipairs(part.rules) do
    local b, was = rule.bucket, reserved[rule.tag]
    if was and was > 0 then
      if rule.kind == 4 then
        anchored.refund(b, was, sent)
      else
        correct(rule, sent, was, 0)
      end
    end
  end
  drop_holds(part, part.reservation, false)
end

local function end_reservation()
  local code = GONE
  for _, part in ipairs(parts) do
    dequeue(part)
    if part.reservation and not is_tombstone(part) then
      if operation == 3 then release(part) else settle(part) end
      part.delete, part.freed, code = true, true, DONE
    end
    if flag == 1 and not is_tombstone(part) then
      store_reservation(part, pack('<d', now + TOMBSTONE_TTL), now + TOMBSTONE_TTL)
    end
  end
  return finish(code)
end

-- restores a reservation: holds concurrency slots again; all other amounts are charged already
local function restore_reservation(part)
  local out = { pack('<dd', 0, 0) }
  for _, rule in ipairs(part.rules) do
    local b, amount = rule.bucket, rule.amount
    if rule.kind == 2 then
      b.held = b.held + amount
      amount = -amount
    end
    if amount ~= 0 then out[#out + 1] = pack('<dd', rule.tag, amount) end
  end
  part.reservation = table.concat(out)
end

local function renew()
  local code = DONE
  for _, part in ipairs(parts) do
    if flag == 1 and not part.reservation then restore_reservation(part) end
    if part.reservation and not is_tombstone(part) then
      local value = sub(part.reservation, 1, 8) .. pack('<d', now + ttl) .. sub(part.reservation, 17)
      store_reservation(part, value, now + ttl)
    else
      code = GONE
    end
  end
  return finish(code)
end

-- executes an operation on each part once per id
local function execute_once(act)
  for _, part in ipairs(parts) do
    if not part.reservation then
      act(part)
      store_reservation(part, pack('<d', now + EXECUTED_TTL), now + EXECUTED_TTL)
    end
  end
  return finish(DONE)
end

local function charge(part)
  for _, rule in ipairs(part.rules) do
    if rule.amount > 0 then rule.methods.take(rule.bucket, rule, rule.amount, now) end
  end
end

local function reset(part)
  part.freed = true
  for i, b in ipairs(part.buckets) do
    local new = kinds[b.kind].fresh(b.tag, b.rule or b)
    new.held, new.rule, part.buckets[i] = b.held, b.rule, new
    if b.rule then b.rule.bucket = new end
  end
end
