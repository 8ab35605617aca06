-- The fast path of lease calls: keys with token buckets, without tickets, expired reservations and
-- refusals. Each part is decided by itself; 'later' has the places of those that continue below.
local answers, later = {}, {}
if operation == 6 then
  local fmod, EXACT = math.fmod, 9007199254740992
  local p = pos
  for k, key in ipairs(KEYS) do
    local at, fast = p, #jumps == 0 and not is_late
    local n, known_created, _, has_usage, size, number, first_report
    n, known_created, _, has_usage, _, size, p = unpack('<dddddd', packed, p)
    local next_part = at + 40 + size
    local lease_id = sub(packed, p, p + 15)
    number, first_report, p = unpack('<dd', packed, p + 16)
    local entry = fast and redis.call('HMGET', key, 's', lease_id, 'w') or {}
    local state, reservation = entry[1], entry[2]
    fast = fast and has_usage ~= 1 and state and #state >= 48 + 64 * n
    if fast and entry[3] then
      -- what is remembered of earlier tickets, unless it is to be forgotten
      local _, next_due, _, first = unpack('<dddd', entry[3])
      fast = #entry[3] < first and not is_check_due(next_due)
    end
    local created, next, expires, till, last_call, q = 0, 0, 0, 0, 0, 33
    if fast then
      local version, last
      version, created, last, next, expires = unpack('<ddddd', state)
      fast = version == 1 and last <= now and now < next and now + ttl <= expires
        and #state == 48 + 64 * n and (known_created == created or known_created == 0 and generation == 0)
      if reservation then
        fast = fast and #reservation >= 32
        if fast then _, till, _, last_call = unpack('<dddd', reservation) end
      end
      -- the first call of a lease, or the one after the last
      fast = fast and (reservation and number > last_call or not reservation and number == 1)
    end
    local out, held, view, grants, i, from = '', '', '', '', 0, 49
    while fast and i < n do
      i = i + 1
      local tag, kind, amount, need, limit, rate, unit, whole, rest, in_flight, least, wanted, _
      tag, kind, _, amount, need, limit, rate, unit, whole, rest = unpack('<dddddddddd', packed, p)
      if kind ~= 1 then fast = false break end
      in_flight, least, wanted, p = unpack('<ddd', packed, p + 80)
      local name, sort, r1, u1, t, w, r, h
      name, sort, r1, u1, t, w, r, h, from = unpack('<dddddddd', state, from)
      if name ~= tag or sort ~= 1 or r1 ~= rate or u1 ~= unit or t > now then fast = false break end
      if reservation and q <= #reservation then
        local about, was = unpack('<dd', reservation, q)
        if about == tag then
          q, h = q + 16, h + was
          if h < 0 then h = 0 end
        end
      end
      -- units missing at t, and units refilled since
      local x, y = w * unit + r, (now - t) * rate
      if last_call < first_report and amount > 0 then
        if x <= y then
          t, w, r, x, y = now, amount, 0, amount * unit, 0
        else
          w, x = w + amount, x + amount * unit
        end
      end
      local missing = x > y and x - y or 0
      local free = (limit - whole - h - in_flight) * unit - rest - missing
      if x >= EXACT or y >= EXACT or free >= EXACT then fast = false break end
      local granted = 0
      if free > 0 then granted = (free - fmod(free, unit)) / unit end
      if granted > wanted then granted = wanted end
      if granted < least then fast = false break end
      h = h + in_flight + granted
      local empty_at = t + x / rate
      if h > 0 and empty_at < now then empty_at = now end
      empty_at = empty_at + ((h + whole) * unit + rest) / rate
      if empty_at > expires then fast = false break end
      local part = fmod(missing, unit)
      out = out .. pack('<dddddddd', tag, 1, rate, unit, t, w, r, h)
      view = view .. pack('<dd', (missing - part) / unit + (part > 0 and 1 or 0), h)
      grants = grants .. pack('<d', granted)
      if granted + in_flight > 0 then held = held .. pack('<dd', tag, -granted - in_flight) end
    end
    if fast and (not reservation or q == #reservation + 1) then
      -- nothing else expires in a hash with only the state, this lease and field w
      local fields = entry[3] and 3 or 2
      if now + ttl < next or till == next and redis.call('HLEN', key) == fields then next = now + ttl end
      redis.call('HSET', key, 's', pack('<dddddd', 1, created, now, next, expires, 0) .. out,
        lease_id, pack('<dddd', now, now + ttl, 0, number) .. held)
      answers[k] = pack('<ddd', 2, 0, created) .. view .. grants
    else
      later[#later + 1] = { k, at }
    end
    p = next_part
  end
  if #later == 0 then return pack('<ddddd', 2, now, 0, 0, 0) .. table.concat(answers) end
end
