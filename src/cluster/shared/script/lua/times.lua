-- Changed clocks, expired reservations, and lost state of a part.
-- reads the usage that 'restore' has charged: lists of time and amount by bucket, oldest first
local function read_restored(part)
  local field = redis.call('HGET', part.key, 'v')
  local restored, p = {}, 1
  while field and p <= #field do
    local tag, amount, at
    tag, amount, at, p = unpack('<ddd', field, p)
    local uses = restored[tag] or {}
    uses[#uses + 1], restored[tag] = { at = at, amount = amount }, uses
  end
  return restored
end

local function write_restored(part, restored)
  local out = {}
  for tag, uses in pairs(restored) do
    for _, use in ipairs(uses) do out[#out + 1] = pack('<ddd', tag, use.amount, use.at) end
  end
  if #out > 0 then redis.call('HSET', part.key, 'v', table.concat(out)) end
end

local function shift(part, by)
  for _, b in ipairs(part.buckets) do kinds[b.kind].move(b, by) end
  each_reservation(part, function(name, value)
    local moved
    if #value == 8 then
      moved = pack('<d', unpack('<d', value) + by)
    else
      local sent, till = unpack('<dd', value)
      moved = pack('<dd', sent > 0 and sent + by or 0, till + by) .. sub(value, 17)
    end
    redis.call('HSET', part.key, name, moved)
    if name == id then part.reservation = moved end
  end)
  if part.tickets > 0 then read_tickets(part, by) end
  local restored = read_restored(part)
  for _, uses in pairs(restored) do
    for _, use in ipairs(uses) do use.at = use.at + by end
  end
  write_restored(part, restored)
  if part.next < EXACT then part.next = part.next + by end
  part.last, part.expires, part.dirty = part.last + by, 0, true
end

-- returns by how much the clock was set forward since the state was last written
local function missed_jump(part)
  local missed = 0
  for i = #jumps, 1, -1 do
    local at, sum = jumps[i].at, missed + jumps[i].by
    if part.last >= at then break end
    if part.last > now - sum + SECOND then
      -- written by a process that noticed the change up to two seconds earlier, or before the clock was also
      -- set back
      return part.last < at - 2 * SECOND and now - part.last or missed
    end
    missed = sum
  end
  return missed
end

-- ends the holds of a reservation; with 'charges', the held amounts count as used
local function drop_holds(part, value, charges)
  local p = 17
  while p <= #value do
    local tag, amount
    tag, amount, p = unpack('<dd', value, p)
    local b = amount < 0 and part.by_tag[tag]
    if b then
      part.freed = true
      b.held = max(b.held + amount, 0)
      if charges then kinds[b.kind].take(b, b.rule, -amount, now) end
    end
  end
end

-- the minimum time between two checks for expired reservations: many leases have ends of their own
local MIN_SWEEP = SECOND / 2

local function sweep(part)
  local next = EXACT
  each_reservation(part, function(name, value)
    local due = unpack('<d', value, #value == 8 and 1 or 9)
    if due > now or (name == id and operation ~= 1) then
      next = min(next, max(due, now))
      return
    end
    if #value > 8 then drop_holds(part, value, true) end
    redis.call('HDEL', part.key, name)
    if name == id then part.reservation = false end
  end)
  part.next, part.dirty = next < EXACT and max(next, now + MIN_SWEEP) or next, true
end

-- charges the usage of a bucket without times of use; returns what is charged now
local function restore_amount(part, rule, use, was)
  local b, at = rule.bucket, min(use.at + part.jump, now)
  local amount = rule.methods.outstanding(b, rule, use.amount, at)
  local before = was and rule.methods.outstanding(b, rule, was.amount, was.at) or 0
  if rule.kind == 1 then at = now end
  if amount > before then
    rule.methods.take(b, rule, amount - before, at)
    part.dirty = true
  end
  if was and rule.kind ~= 1 then at = max(at, was.at) end
  amount = max(amount, before)
  return amount > 0 and { { at = at, amount = amount } } or {}
end

-- charges the usage of a bucket that is due back at known times, such that after each time at least
-- as much counts as any caller knows; returns what is charged now
local function restore_uses(part, rule, uses, was)
  local b, known, before, added, last = rule.bucket, 0, 0, {}, #was
  for i = #uses, 1, -1 do
    local use = { at = uses[i].at + part.jump, amount = uses[i].amount }
    if rule.methods.outstanding(b, rule, use.amount, use.at) == 0 then break end
    known = known + use.amount
    while last > 0 and was[last].at >= use.at do before, last = before + was[last].amount, last - 1 end
    if known > before then
      use.amount = known - before
      rule.methods.restore(b, rule, use.amount, min(use.at, now))
      before, added[#added + 1], part.dirty = known, use, true
    end
  end
  for _, use in ipairs(was) do
    if rule.methods.outstanding(b, rule, use.amount, use.at) > 0 then added[#added + 1] = use end
  end
  table.sort(added, function(one, other) return one.at < other.at end)
  return added
end

-- charges the usage that the caller knows and this state lacks, once for all callers
local function restore(part)
  local restored = read_restored(part)
  -- by how much the clock was set forward since the caller knew it
  part.jump = 0
  for _, change in ipairs(jumps) do
    if change.at > part.known_at then part.jump = part.jump + change.by end
  end
  for i, rule in ipairs(part.rules) do
    local uses, was = part.known_uses[i] or {}, restored[rule.tag] or {}
    if rule.methods.restore then
      restored[rule.tag] = restore_uses(part, rule, uses, was)
    elseif #uses > 0 then
      restored[rule.tag] = restore_amount(part, rule, uses[1], was[1])
    end
  end
  write_restored(part, restored)
end
