-- Decodes the parts of a call, and loads and saves their hashes. Fields of a hash: s holds the
-- buckets, q the tickets of waiting requests, t with an id the expiry of its ticket, v the restored
-- usage; each reservation has a field named by its id.
local kinds = { token, concurrency, sliding, anchored, grid }

local function read_rule(p)
  local rule, _ = {}, nil
  rule.tag, rule.kind, rule.holds, rule.amount, rule.need, rule.limit, p = unpack('<dddddd', packed, p)
  local kind = rule.kind
  if kind <= 2 then
    rule.p, rule.q, rule.mw, rule.mr, p = unpack('<dddd', packed, p)
  elseif kind == 3 then
    rule.span, p = unpack('<d', packed, p)
  elseif kind == 4 then
    rule.window, rule.margin, p = unpack('<dd', packed, p)
  elseif kind == 5 then
    local n
    rule.margin, rule.valid, n, p = unpack('<ddd', packed, p)
    for i = 1, n do rule[i], p = unpack('<d', packed, p) end
  end
  if operation == 6 then rule.in_flight, rule.least, rule.wanted, p = unpack('<ddd', packed, p) end
  return rule, p
end

local function read_part(key, p)
  local part = { key = key, rules = {}, known_uses = false }
  local n, has_usage
  n, part.known_created, part.known_at, has_usage, p = unpack('<dddd', packed, p)
  if operation == 6 then
    part.id = sub(packed, p + 8, p + 23)
    part.call_number, part.first_report, p = unpack('<dd', packed, p + 24)
  end
  for i = 1, n do part.rules[i], p = read_rule(p) end
  part.wants_uses = has_usage == 2
  if has_usage == 1 then
    part.known_uses = {}
    for i = 1, n do
      local uses, count = {}, nil
      count, p = unpack('<d', packed, p)
      for j = 1, count do
        local at, amount
        at, amount, p = unpack('<dd', packed, p)
        uses[j] = { at = at, amount = amount }
      end
      part.known_uses[i] = uses
    end
  end
  return part, p
end

local function load(part, state)
  part.buckets, part.by_tag = {}, {}
  if not state then
    part.created, part.last, part.next, part.expires, part.tickets = 0, 0, EXACT, 0, 0
    return true
  end
  local version, p
  version, part.created, part.last, part.next, part.expires, part.tickets, p = unpack('<dddddd', state)
  if version ~= 1 then return false end
  local size = #state
  while p <= size do
    local tag, kind, b
    tag, kind, p = unpack('<dd', state, p)
    b, p = kinds[kind].load(tag, state, p)
    part.buckets[#part.buckets + 1], part.by_tag[tag] = b, b
  end
  return true
end

-- converts a bucket of another kind; its usage counts from now
local function convert(old, rule)
  local b = kinds[rule.kind].fresh(rule.tag, rule)
  local used = old.kind == 5 and now < old.to and old.sum or 0
  if old.kind ~= 5 then used = kinds[old.kind].used(old, nil, now) end
  if used > 0 then kinds[rule.kind].take(b, rule, used, now) end
  b.held = old.held
  return b
end

local function bind(part)
  for i, rule in ipairs(part.rules) do
    local b = part.by_tag[rule.tag]
    if not b then
      b = kinds[rule.kind].fresh(rule.tag, rule)
      part.buckets[#part.buckets + 1] = b
    elseif b.kind ~= rule.kind then
      local new = convert(b, rule)
      for j, other in ipairs(part.buckets) do
        if other == b then part.buckets[j] = new end
      end
      b, part.dirty = new, true
    elseif kinds[rule.kind].bind(b, rule) then
      part.dirty = true
    end
    part.by_tag[rule.tag], b.rule, rule.bucket, rule.methods = b, rule, b, kinds[rule.kind]
  end
end

-- how far the clock may be set forward before hashes expire that are still needed
local MAX_EARLY = 900 * SECOND

-- returns the time until which the hash is needed (microseconds)
local function needed_until(part)
  local till = part.needed_until or 0
  for _, rule in ipairs(part.rules) do till = max(till, rule.methods.empty_at(rule.bucket, rule)) end
  return min(till, now + FAR)
end

local function save(part)
  local key, states = part.key, {}
  if part.created == 0 then part.created = now end
  for _, b in ipairs(part.buckets) do
    local methods = kinds[b.kind]
    local over = methods.empty_at(b) + (b.kind == 5 and 2764800 or 60) * SECOND
    if b.rule or b.held > 0 or over > now then states[#states + 1] = methods.save(b) end
  end
  local till = needed_until(part)
  local prolong = till > part.expires
  if prolong then part.expires = floor(till + (till - now) / 4 + MAX_EARLY) end
  local head = pack('<dddddd', 1, part.created, now, part.next, part.expires, part.tickets)
  local state = head .. table.concat(states)
  if part.new_value then
    redis.call('HSET', key, 's', state, id, part.new_value)
  else
    redis.call('HSET', key, 's', state)
    if part.delete then redis.call('HDEL', key, id) end
  end
  if prolong then redis.call('PEXPIRE', key, string.format('%.0f', ceiling(part.expires - now, 1000))) end
end
