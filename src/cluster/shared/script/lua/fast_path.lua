-- The fast path for most calls, without function calls: one key with only token buckets and
-- concurrency limits, with no expired reservations and exact numbers. All other calls continue
-- below.
local found
if operation <= 3 and #KEYS == 1 and jump == 0 then
  local fmod, EXACT = math.fmod, 9007199254740992
  local n, known_created, known_at, has_usage, p = unpack('<dddd', packed, pos)
  found = redis.call('HMGET', KEYS[1], 's', id, 'q')
  local state, reservation = found[1], found[2]
  local fast = has_usage == 0 and state and #state == 48 + 64 * n and #packed == 72 + 80 * n
    and (expected == 0 or now <= expected + 1000000)
  if operation == 1 then
    fast = fast and not reservation
  else
    fast = fast and reservation and flag == 0 and #reservation > 8
  end
  local version, created, last, next, expires, tickets, from
  if fast then
    version, created, last, next, expires, tickets, from = unpack('<dddddd', state)
    fast = version == 1 and last <= now and now < next and tickets == 0
      and (known_created == 0 or known_created == created)
  end
  local states, held, views, wait, which, till = '', '', '', 0, 0, now + ttl
  local sent, size, place = now, fast and reservation and #reservation or 0, 17
  if fast and operation > 1 then sent = unpack('<d', reservation) end
  local i = 0
  while fast and i < n do
    i = i + 1
    local tag, kind, holds, amount, need, limit, rate, unit, whole, rest
    tag, kind, holds, amount, need, limit, rate, unit, whole, rest, p =
      unpack('<dddddddddd', packed, p)
    local name, sort, r1, u1, t, w, r, h
    name, sort, r1, u1, t, w, r, h, from = unpack('<dddddddd', state, from)
    fast = name == tag and sort == kind and r1 == rate and u1 == unit and kind <= 2
    -- units missing at t, and units refilled since
    local x, y = w * unit + r, (now - t) * rate
    if operation == 1 then
      if amount > 0 then
        local due, take = 0, amount
        if kind == 2 then
          if h >= limit then due = 1e20 end
        else
          local over = need + h + whole - limit
          local short = x + over * unit + rest
          if need > limit then
            due = 1e21
          elseif h > 0 and (over > 0 or over == 0 and rest > 0) then
            due = 1e20
          elseif short > y then
            local part = fmod(short, rate)
            due = t + (short - part) / rate + (part > 0 and 1 or 0)
          end
          if short >= EXACT then fast = false end
        end
        if due > wait then wait, which = due, i end
        if holds == 1 then
          h, take = h + amount, -amount
        elseif x <= y then
          t, w, r, x, y = now, amount, 0, amount * unit, 0
        else
          w, x = w + amount, x + amount * unit
        end
        held = held .. pack('<dd', tag, take)
      end
    else
      local was, about = 0, nil
      if place < size then
        about, was = unpack('<dd', reservation, place)
        if about == tag then place = place + 16 else was = 0 end
      end
      if operation == 3 then amount = 0 end
      local more = amount - was
      if was < 0 or was == 0 and holds == 1 then
        h, more = h + was, amount
        if h < 0 then h = 0 end
      end
      if kind == 2 then
        more = 0
      elseif more > 0 then
        if x <= y then
          t, w, r, x, y = now, more, 0, more * unit, 0
        else
          w, x = w + more, x + more * unit
        end
      elseif more < 0 and x > y then
        local back = -more * unit - (now - sent) * rate
        if more * unit <= -EXACT or x >= EXACT then fast = false end
        if back > 0 then
          x = x - y - back
          if x < 0 then x = 0 end
          t, y, r = now, 0, fmod(x, unit)
          w = (x - r) / unit
        end
      end
    end
    if x >= EXACT then fast = false end
    local used = 0
    if kind == 1 then
      if x > y then
        local part = fmod(x - y, unit)
        used = (x - y - part) / unit + (part > 0 and 1 or 0)
      end
      local empty_at = t + x / rate
      if h > 0 and empty_at < now then empty_at = now end
      empty_at = empty_at + ((h + whole) * unit + rest) / rate
      if empty_at > till then till = empty_at end
    end
    states = states .. pack('<dddddddd', tag, kind, rate, unit, t, w, r, h)
    views = views .. pack('<dd', used, h)
  end
  fast = fast and place >= size
  if fast and wait == 0 and till <= expires then
    if operation == 1 then
      local due = now + ttl
      if due < next then next = due end
      local head = pack('<dddddd', 1, created, now, next, expires, 0)
      redis.call('HSET', KEYS[1], 's', head .. states, id, pack('<dd', now, due) .. held)
    else
      redis.call('HSET', KEYS[1], 's', pack('<dddddd', 1, created, now, next, expires, 0) .. states)
      redis.call('HDEL', KEYS[1], id)
    end
    return pack('<dddddd', 0, now, 0, 0, 0, created) .. views
  end
  if fast and wait > 0 and flag == 0 then
    views, from = '', 49
    for _ = 1, n do
      local name, kind, rate, unit, t, w, r, h, used
      name, kind, rate, unit, t, w, r, h, from = unpack('<dddddddd', state, from)
      used = w * unit + r - (now - t) * rate
      if kind == 2 or used < 0 then used = 0 end
      if kind == 1 then
        local part = fmod(used, unit)
        used = (used - part) / unit + (part > 0 and 1 or 0)
      end
      views = views .. pack('<dd', used, h)
    end
    if wait == 1e20 then wait = -1 elseif wait == 1e21 then wait = -2 else wait = wait - now end
    return pack('<dddddd', 1, now, 0, which - 1, wait, created) .. views
  end
end
