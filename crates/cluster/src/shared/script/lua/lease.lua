-- Leases: reservations from which their holder admits requests.

-- the tag in a lease under which the number of its last call is stored
local CALL_NUMBER = 0

-- Returns the code to answer with, or nothing if the lease call is to be executed. A call for a
-- missing lease, or one that arrives after a later call, is not executed; a repeated call returns
-- the first grant.
local function refusal_code(part)
  local reserved, reports_usage = {}, false
  if part.reservation then reserved = decode_reservation(part.reservation) end
  part.last_call = reserved[CALL_NUMBER] or 0
  for _, rule in ipairs(part.rules) do
    rule.granted = max(-(reserved[rule.tag] or 0) - rule.in_flight, 0)
    reports_usage = reports_usage or rule.amount > 0 or rule.in_flight > 0
  end
  local is_lost = not part.reservation and part.call_number > 1 and reports_usage
  if part.last_call > part.call_number or is_lost then return GONE end
  if part.reservation and part.last_call == part.call_number then return LEASED end
end

-- Decides about one part; returns its answer.
local function lease(part)
  local code = is_tombstone(part) and GONE or refusal_code(part)
  local longest = 0
  if not code then
    if part.last_call < part.first_report then
      for _, rule in ipairs(part.rules) do
        if rule.amount > 0 then rule.methods.take(rule.bucket, rule, rule.amount, now) end
      end
    end
    if part.reservation then drop_holds(part, part.reservation, false) end
    add_earlier_tickets(part)
    for _, rule in ipairs(part.rules) do
      local b = rule.bucket
      b.held = b.held + rule.in_flight
      rule.granted = max(min(rule.methods.available(b, rule) - (b.ahead or 0), rule.wanted), 0)
      if rule.granted < rule.least then
        local wait = rule.methods.check(b, rule, rule.least, now, b.ahead or 0)
        longest = max(longest, wait == 0 and UNKNOWN or wait)
      end
    end
    for _, rule in ipairs(part.rules) do
      if rule.of then rule.of.granted = min(rule.of.granted, rule.granted) end
    end
    local out = { pack('<dddd', now, now + ttl, CALL_NUMBER, part.call_number) }
    for _, rule in ipairs(part.rules) do
      rule.granted = longest > 0 and 0 or (rule.of or rule).granted
      rule.bucket.held = rule.bucket.held + rule.granted
      local amount = rule.granted + rule.in_flight
      if amount > 0 then out[#out + 1] = pack('<dd', rule.tag, -amount) end
    end
    -- nothing else expires in a hash with only the state, this lease and field w
    local is_only = part.reservation and unpack('<d', part.reservation, 9) == part.next
      and redis.call('HLEN', part.key) == (part.waiting and 3 or 2)
    store_reservation(part, table.concat(out), now + ttl)
    if is_only then part.next = now + ttl end
    code = longest > 0 and REFUSED or LEASED
  end
  local out = { pack('<dd', code, longest > 0 and encode_wait(longest) or 0), finish_part(part) }
  for i = 1, part.count do out[i + 2] = pack('<d', part.rules[i].granted or 0) end
  return table.concat(out)
end
