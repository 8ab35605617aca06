-- Changed clocks, expired reservations, and lost state of a part.
-- reads what 'restore' has restored: the time of the latest view, the processes that have reported, and the
-- usage by bucket: lists of time and amount
local function read_restored(part)
  local field = redis.call('HGET', part.key, 'v')
  local restored, size, p = { at = 0, by = '', uses = {} }, nil, nil
  if not field then return restored end
  restored.at, size, p = unpack('<dd', field)
  restored.by, p = sub(field, p, p + size - 1), p + size
  while p <= #field do
    local tag, amount, at
    tag, amount, at, p = unpack('<ddd', field, p)
    local uses = restored.uses[tag] or {}
    uses[#uses + 1], restored.uses[tag] = { at = at, amount = amount }, uses
  end
  return restored
end

local function write_restored(part, restored)
  local out = { pack('<dd', restored.at, #restored.by), restored.by }
  for tag, uses in pairs(restored.uses) do
    for _, use in ipairs(uses) do out[#out + 1] = pack('<ddd', tag, use.amount, use.at) end
  end
  redis.call('HSET', part.key, 'v', table.concat(out))
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
  if part.waiting then read_tickets(part, by) end
  local restored = read_restored(part)
  if restored.at > 0 then
    restored.at = restored.at + by
    for _, uses in pairs(restored.uses) do
      for _, use in ipairs(uses) do use.at = use.at + by end
    end
    write_restored(part, restored)
  end
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
  each_field(part, function(name, value)
    if #name == 17 and unpack('<d', value) <= now then redis.call('HDEL', part.key, name) end
    if #name ~= 16 then return end
    local due = unpack('<d', value, #value == 8 and 1 or 9)
    if due > now or (name == id and operation ~= 1) then
      next = min(next, max(due, now))
      return
    end
    if #value > 8 then drop_holds(part, value, true) end
    redis.call('HDEL', part.key, name)
    if name == id then part.reservation = false end
  end)
  -- tickets of an older version
  redis.call('HDEL', part.key, 'q')
  part.next, part.dirty = next < EXACT and max(next, now + MIN_SWEEP) or next, true
end

-- the longest time for which a process waits for the reports of others, and makes no calls
local REPORTING = 2 * SECOND

-- restores the reservations of a process
local function restore_reservations(part)
  for _, reservation in ipairs(part.known_reservations) do
    local name, till, p = reservation.name, now + REPORTING + reservation.lasts, 1
    local value = pack('<dd', min(reservation.sent + part.jump, now), till) .. reservation.amounts
    while p <= #reservation.amounts do
      local tag, amount
      tag, amount, p = unpack('<dd', reservation.amounts, p)
      local b = amount < 0 and part.by_tag[tag]
      if b then b.held = b.held - amount end
    end
    redis.call('HSET', part.key, name, value)
    if name == id then part.reservation = value end
    part.next, part.needed_until = min(part.next, till), max(part.needed_until or 0, till)
  end
end

-- Restores what a process knows of a lost state. Each process reports its reservations once. The usage is that of
-- the latest view of any process, in which the usage of all of them counts.
local function restore(part)
  local restored, process, jump = read_restored(part), sub(part.id or id, 1, 8), 0
  for _, change in ipairs(jumps) do
    if change.at > part.known_at then jump = jump + change.by end
  end
  local place = string.find(restored.by, process, 1, true)
  while place and place % 8 ~= 1 do place = string.find(restored.by, process, place + 1, true) end
  part.jump = jump
  if not place then
    restored.by = restored.by .. process
    restore_reservations(part)
  end
  local at = part.known_at + jump
  if at >= restored.at then
    for i, rule in ipairs(part.rules) do
      local uses, was = {}, restored.uses[rule.tag] or {}
      for _, use in ipairs(part.known_uses[i] or {}) do
        local used_at = min(use.at + jump, now)
        if rule.methods.outstanding(rule.bucket, rule, use.amount, used_at) > 0 then
          uses[#uses + 1] = { at = used_at, amount = use.amount }
        end
      end
      -- of two views of the same time, the order is unknown
      if at > restored.at or outstanding(rule.bucket, rule, uses) > outstanding(rule.bucket, rule, was) then
        rule.methods.restore(rule.bucket, rule, uses, was)
        restored.uses[rule.tag] = uses
      end
    end
    restored.at = at
  end
  if #part.known_reservations > 0 or part.created > 0 or next(restored.uses) then
    write_restored(part, restored)
    part.dirty, part.needed_until = true, max(part.needed_until or 0, now + SECOND)
  end
end
