-- Changed clocks, expired reservations, and lost state of a part.
local function each_reservation(part, visit)
  local all = redis.call('HGETALL', part.key)
  for i = 1, #all, 2 do
    if #all[i] == 16 then visit(all[i], all[i + 1]) end
  end
end

-- reads the usage that 'restore' has charged: amount and time by bucket
local function read_restored(part)
  local field = redis.call('HGET', part.key, 'v')
  local restored, p = {}, 1
  while field and p <= #field do
    local tag, amount, at
    tag, amount, at, p = unpack('<ddd', field, p)
    restored[tag] = { amount, at }
  end
  return restored
end

local function write_restored(part, restored)
  local out = {}
  for tag, was in pairs(restored) do out[#out + 1] = pack('<ddd', tag, was[1], was[2]) end
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
  for _, was in pairs(restored) do was[2] = was[2] + by end
  write_restored(part, restored)
  if part.next < EXACT then part.next = part.next + by end
  part.last, part.expires, part.dirty = part.last + by, 0, true
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

-- charges the usage that the caller knows and this state lacks, once for all callers; 'jump' is the
-- amount by which the clock was set forward since then
local function restore(part)
  local restored = read_restored(part)
  for i, rule in ipairs(part.rules) do
    local b, at = rule.bucket, min(part.known_at + jump, now)
    local amount = rule.methods.outstanding(b, rule, part.known_usage[i], at)
    local was = restored[rule.tag]
    local before = was and rule.methods.outstanding(b, rule, was[1], was[2]) or 0
    if amount > before then
      rule.methods.take(b, rule, amount - before, rule.kind == 1 and now or at)
      part.dirty = true
    end
    local most = max(amount, before)
    if rule.kind == 1 then at = now elseif was then at = max(at, was[2]) end
    restored[rule.tag] = most > 0 and { most, at } or nil
  end
  write_restored(part, restored)
end
