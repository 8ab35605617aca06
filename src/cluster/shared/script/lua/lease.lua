-- Leases: reservations from which the holder admits its own requests.

-- the tag, in a lease, under which the number of its last call is stored
local TURN = 0

-- Checks whether to execute a lease call. A call for a missing lease, or one that arrives after a
-- later call, is not executed; a repeated call returns the first grant.
local function is_due(part)
  local had, told = part.mine and reserved(part.mine) or {}, false
  part.heard = had[TURN] or 0
  for _, rule in ipairs(part.rules) do
    rule.granted = max(-(had[rule.tag] or 0) - rule.flying, 0)
    told = told or rule.amount > 0 or rule.flying > 0
  end
  if part.heard > part.turn or not part.mine and part.turn > 1 and told then return GONE end
  if part.mine and part.heard == part.turn then return LEASED end
end

local function lease()
  for _, part in ipairs(parts) do
    local said = is_tomb(part) and GONE or is_due(part)
    if said then return finish(said) end
  end
  for _, part in ipairs(parts) do
    if part.heard < part.told then
      for _, rule in ipairs(part.rules) do
        if rule.amount > 0 then rule.of.take(rule.bucket, rule, rule.amount, now) end
      end
    end
    if part.mine then let_go(part, part.mine, false) end
    look_ahead(part)
    for _, rule in ipairs(part.rules) do rule.bucket.held = rule.bucket.held + rule.flying end
  end
  local longest, which, where = 0, 0, 0
  for i, part in ipairs(parts) do
    for j, rule in ipairs(part.rules) do
      local b = rule.bucket
      rule.granted = max(min(rule.of.room(b, rule) - (b.ahead or 0), rule.wanted), 0)
      if rule.granted < rule.least then
        local wait = rule.of.check(b, rule, rule.least, now, b.ahead or 0)
        if wait == 0 then wait = UNKNOWN end
        if wait > longest then longest, which, where = wait, i, j end
      end
    end
  end
  for _, part in ipairs(parts) do
    local out = { pack('<dddd', now, now + ttl, TURN, part.turn) }
    for _, rule in ipairs(part.rules) do
      if longest > 0 then rule.granted = 0 end
      rule.bucket.held = rule.bucket.held + rule.granted
      local amount = rule.granted + rule.flying
      if amount > 0 then out[#out + 1] = pack('<dd', rule.tag, -amount) end
    end
    keep(part, table.concat(out), now + ttl)
  end
  if longest > 0 then return finish(REFUSED, which - 1, where - 1, longest) end
  return finish(LEASED)
end
