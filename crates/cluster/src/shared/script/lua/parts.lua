-- Decodes the parts of a call, and loads and saves their hashes. Fields of a hash: s holds the
-- buckets, w the tickets of waiting requests, t with an id the expiry of its ticket, v the restored
-- usage, o the rules of several processes; each reservation has a field named by its id.
kinds = { token, concurrency, sliding, anchored, grid }
-- the version of a state with buckets of windows that only some processes state
local MIXED = 2

local function each_field(part, visit)
  local all = redis.call('HGETALL', part.key)
  for i = 1, #all, 2 do visit(all[i], all[i + 1]) end
end

local function each_reservation(part, visit)
  each_field(part, function(name, value)
    if #name == 16 then visit(name, value) end
  end)
end

-- reads a rule, which is encoded at a position of a text
local function read_rule(packed, p)
  local rule, from = {}, p
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
  rule.text = sub(packed, from, p - 1)
  return rule, p
end

local function read_part(key, p)
  local part = { key = key, rules = {}, known_uses = false }
  local n, has_usage
  n, part.known_created, part.known_at, has_usage, part.service, p = unpack('<ddddd', packed, p)
  if operation == 6 then
    part.id = sub(packed, p + 8, p + 23)
    part.call_number, part.first_report, p = unpack('<dd', packed, p + 24)
  end
  part.count = n
  for i = 1, n do
    local rule
    rule, p = read_rule(packed, p)
    if operation == 6 then rule.in_flight, rule.least, rule.wanted, p = unpack('<ddd', packed, p) end
    rule.index, part.rules[i] = i, rule
  end
  part.wants_uses = has_usage == 2
  if has_usage == 1 then
    part.known_uses, part.known_reservations = {}, {}
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
    local count
    count, p = unpack('<d', packed, p)
    for i = 1, count do
      local sent, lasts, size = unpack('<ddd', packed, p + 16)
      local from = p + 40
      part.known_reservations[i] =
        { name = sub(packed, p, p + 15), sent = sent, lasts = lasts, amounts = sub(packed, from, from + size - 1) }
      p = from + size
    end
  end
  return part, p
end

local function load(part, state)
  part.buckets, part.by_tag = {}, {}
  if not state then
    part.created, part.last, part.next, part.expires = 0, 0, EXACT, 0
    return true
  end
  local version, _, p
  -- the last number is the count of an older version's tickets
  version, part.created, part.last, part.next, part.expires, _, p = unpack('<dddddd', state)
  if version ~= 1 and version ~= MIXED then return false end
  part.is_mixed = version == MIXED
  local size = #state
  while p <= size do
    local tag, kind, b
    tag, kind, p = unpack('<dd', state, p)
    b, p = kinds[kind].load(tag, state, p)
    part.buckets[#part.buckets + 1], part.by_tag[tag] = b, b
  end
  return true
end

-- returns times and amounts of all usage that a bucket knows of, each as late as it can have been
local function usage(b)
  if b.kind == 1 then return { { b.t, b.w + (b.r > 0 and 1 or 0) } } end
  if b.kind == 4 then return { { b.started == 1 and min(now, ends(b)) or 0, b.sum } } end
  if b.kind == 5 then return { { b.at, b.sum } } end
  local all, from = {}, 1
  while from <= #b.log do
    local at, amount
    at, amount, from = unpack('<dd', b.log, from)
    all[#all + 1] = { at, amount }
  end
  return all
end

-- creates the bucket of a rule from one of another kind or window, with its usage and held amounts
local function convert(old, rule)
  local b = kinds[rule.kind].fresh(rule.tag, rule)
  for _, use in ipairs(usage(old)) do
    if use[2] > 0 then kinds[rule.kind].take(b, rule, use[2], use[1]) end
  end
  b.held = old.held
  return b
end

local function dimension(tag) return floor(tag / 67108864) end

-- adds the amounts that reservations have in one bucket to another one, which starts with its amounts
local function reserve_also(part, old, new)
  each_reservation(part, function(name, value)
    local p = 17
    while p <= #value do
      local tag, amount
      tag, amount, p = unpack('<dd', value, p)
      if tag == old.tag then
        value = value .. pack('<dd', new.tag, amount)
        redis.call('HSET', part.key, name, value)
        if name == id then part.reservation = value end
        return
      end
    end
  end)
end

-- creates the bucket of a rule: with what that of another window of the dimension knows, if the call has no
-- rule for that one
local function create(part, rule)
  local named, old, most = {}, nil, -1
  for _, other in ipairs(part.rules) do named[other.tag] = true end
  for _, b in ipairs(part.buckets) do
    if dimension(b.tag) == dimension(rule.tag) and not named[b.tag] then
      local used = 0
      for _, use in ipairs(usage(b)) do used = used + use[2] end
      if used + b.held > most then old, most = b, used + b.held end
    end
  end
  if not old then return kinds[rule.kind].fresh(rule.tag, rule) end
  local b = convert(old, rule)
  reserve_also(part, old, b)
  return b
end

-- how long the rule of a process counts for all others after its last call
local STATED_FOR = 10 * SECOND

-- Adds the rules of other processes, which limit the same dimensions in other windows: all of them count. A
-- process states its rules in field o while the state has buckets of other windows.
local function add_rules_of_others(part)
  local own, others, stated, p, process = {}, {}, {}, 1, sub(part.id or id, 1, 8)
  for _, rule in ipairs(part.rules) do own[dimension(rule.tag)] = rule end
  for _, b in ipairs(part.buckets) do
    if not b.rule and own[dimension(b.tag)] then others[#others + 1] = b end
  end
  if #others == 0 and not part.is_mixed then return end
  local field = redis.call('HGET', part.key, 'o') or ''
  while p <= #field do
    local at, tag, size
    at, tag, size, p = unpack('<ddd', field, p)
    stated[tag] = { at, sub(field, p + 8, p + 7 + size), sub(field, p, p + 7) }
    p = p + 8 + size
  end
  for _, rule in ipairs(part.rules) do stated[rule.tag] = { now, rule.text, process } end
  for _, b in ipairs(others) do
    local known = stated[b.tag]
    if known and known[3] ~= process and now < known[1] + STATED_FOR then
      local rule, of = read_rule(known[2], 1), own[dimension(b.tag)]
      if rule.kind == b.kind and not (rule.valid and (now < rule[1] or now >= rule.valid)) then
        rule.of, rule.amount, rule.need = of, of.amount, of.need
        rule.in_flight, rule.least, rule.wanted = of.in_flight, of.least, of.wanted
        b.rule, rule.bucket, rule.methods = rule, b, kinds[b.kind]
        part.rules[#part.rules + 1] = rule
      end
    end
  end
  local out = {}
  for tag, known in pairs(stated) do
    local at, text, by = known[1], known[2], known[3]
    if now < at + STATED_FOR then out[#out + 1] = pack('<ddd', at, tag, #text) .. by .. text end
  end
  redis.call('HSET', part.key, 'o', table.concat(out))
  part.is_mixed, part.dirty = #others > 0, true
end

local function bind(part)
  for i, rule in ipairs(part.rules) do
    local b = part.by_tag[rule.tag]
    if not b then
      b = create(part, rule)
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
  if part.created > 0 then add_rules_of_others(part) end
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
  local version = part.is_mixed and MIXED or 1
  local head = pack('<dddddd', version, part.created, now, part.next, part.expires, 0)
  local state = head .. table.concat(states)
  if part.new_value then
    redis.call('HSET', key, 's', state, id, part.new_value)
  else
    redis.call('HSET', key, 's', state)
    if part.delete then redis.call('HDEL', key, id) end
  end
  if prolong then redis.call('PEXPIRE', key, string.format('%.0f', ceiling(part.expires - now, 1000))) end
end
