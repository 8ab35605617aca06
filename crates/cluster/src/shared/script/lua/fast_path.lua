-- The fast path for most calls, without function calls: keys with token buckets, concurrency limits
-- and sliding windows, with no expired reservations and tickets, and exact numbers. It writes only
-- when the whole call is decided; all other calls continue below.
local found, TICKET_TTL, MAX_TICKETS = {}, 900000, 256
local is_late = expected > 0 and now > expected + 1000000
local fast = #jumps == 0 and not is_late and (operation == 1 or (operation <= 3 and flag == 0))
if fast then
  local fmod, floor, find, EXACT = math.fmod, math.floor, string.find, 9007199254740992
  local count, views, wait, which, where, p = #KEYS, '', 0, 1, 1, pos
  local heads, states, reservations, queues, wakes = {}, {}, {}, {}, {}
  local is_mixed = false
  for k = 1, count do
    local n, known_created, known_at, has_usage, _
    n, known_created, known_at, has_usage, _, p = unpack('<ddddd', packed, p)
    local entry = redis.call('HMGET', KEYS[k], 's', id, 'w')
    found[k] = entry
    local state, reservation, queue = entry[1], entry[2], entry[3]
    fast = fast and has_usage ~= 1 and state
      and (operation == 1 and not reservation or operation > 1 and reservation and #reservation > 8)
    if not fast then break end
    local version, created, last, next, expires, _, from = unpack('<dddddd', state)
    fast = version == 1 and last <= now and now < next
      and (known_created == created or known_created == 0 and generation == 0)
    local place, base, record, size = false, 57 + 16 * n, 48 + 16 * n, #state
    local columns, common, tickets, is_due = n, 0, 0, false
    if queue then
      local next_due
      columns, next_due, common, base = unpack('<dddd', queue)
      tickets = (#queue - base + 1) / (48 + 16 * columns)
      is_due = is_check_due(next_due)
    end
    if fast and tickets > 0 then
      place = find(queue, id, base, true)
      while place and (place - base) % record ~= 0 do place = find(queue, id, place + 1, true) end
      fast = columns == n and not is_due and not (place and operation > 1)
      -- the order of several flows is found below, and a renewed ticket stays where it is
      if fast and operation == 1 and common ~= order then
        fast, is_mixed = place and unpack('<d', queue, place + 16) == order, true
      end
    elseif fast and operation == 1 then
      -- what is remembered of earlier tickets is to be forgotten
      fast = not is_due
    end
    -- the new state in pieces, the first one for the head, so that long logs are copied once
    local out, o, held, ahead, till, earliest = { '' }, 1, '', 0, now + ttl, now
    -- whether the first waiting request may fit now
    local freed, full = place, false
    local sent, length, at = now, reservation and #reservation or 0, 17
    if reservation then sent = unpack('<d', reservation) end
    local i = 0
    while fast and i < n do
      i = i + 1
      local rule_at, tag, kind, holds, amount, need, limit, rate, unit, whole, rest = p, nil
      if p + 79 <= #packed then
        tag, kind, holds, amount, need, limit, rate, unit, whole, rest, p =
          unpack('<dddddddddd', packed, p)
      else
        tag, kind, holds, amount, need, limit, rate, p = unpack('<ddddddd', packed, p)
      end
      if kind == 3 then p = rule_at + 56 end
      local bucket_at, name, sort, r1, u1, t, w, r, h = from, nil
      if from + 63 <= size then
        name, sort, r1, u1, t, w, r, h, from = unpack('<dddddddd', state, from)
      elseif from + 47 <= size then
        name, sort, r1, u1, t, w, from = unpack('<dddddd', state, from)
      end
      if name ~= tag or sort ~= kind or kind > 3 or r1 ~= rate then fast = false break end
      if tickets > 0 then
        local column, gone = unpack('<dd', queue, 41 + 16 * i)
        local own, before = unpack('<dd', queue, (place or #queue - record + 1) + 32 + 16 * i)
        if column ~= tag then fast = false break end
        ahead = before - gone + (place and 0 or own)
      end
      -- the amount reserved for this bucket, and the amount to charge
      local was, about, more, hold = 0, nil, amount, 0
      if operation > 1 then
        if at < length then
          about, was = unpack('<dd', reservation, at)
          if about == tag then at = at + 16 else was = 0 end
        end
        if operation == 3 then amount = 0 end
        more = amount - was
        if was < 0 or was == 0 and holds == 1 then more, hold = amount, was end
      elseif holds == 1 then
        more, hold = 0, amount
      end
      if more < 0 or hold < 0 then freed = true end
      -- when the bucket admits the amount: now, and if all that is held or kept for others came back
      local due, free_at, used, empty_at, uses = 0, 0, 0, 0, ''
      if kind == 3 then
        local total, first, log_end = t, bucket_at + 48, bucket_at + 48 + w
        h, from = u1, log_end
        local since, last_at, last_sum = now - rate, 0, 0
        while first < log_end do
          local time, sum = unpack('<dd', state, first)
          if time > since then break end
          total, first = total - sum, first + 16
        end
        if operation == 1 and amount > 0 then
          local free = limit - need
          local available = free - h - ahead
          local least, left, next_at, sum = available < 0 and free or available, total, first, nil
          while left > least and next_at < log_end do
            due, sum, next_at = unpack('<dd', state, next_at)
            due = due + rate
            if left > free then free_at = due end
            left = left - sum
          end
          if need > limit then due = 1e21 elseif available < 0 then due = 1e20 end
        end
        h = h + hold
        if h < 0 then h = 0 end
        local old, new, rest = '', '', ''
        if log_end > first then last_at, last_sum = unpack('<dd', state, log_end - 16) end
        if last_at > now then fast = false end
        if more > 0 and (operation == 1 or hold < 0 or was == 0 and holds == 1) then
          local merges = last_at == now
          if not merges and log_end - first >= 2048 then
            local width = floor(rate * 125 / 32)
            if width < 1 then width = 1 end
            local part = fmod(fmod(fmod(fmod(last_at, width) * 10, width) * 10, width) * 10, width)
            merges = part + (now - last_at) * 1000 < width
          end
          if merges and log_end > first then
            old, new = sub(state, first, log_end - 17), pack('<dd', now, last_sum + more)
          else
            old, new = sub(state, first, log_end - 1), pack('<dd', now, more)
          end
          total, last_at = total + more, now
        elseif more ~= 0 and operation > 1 and sent + rate > now then
          local low, high = 0, (log_end - first) / 16
          while low < high do
            local middle = floor((low + high) / 2)
            if unpack('<d', state, first + middle * 16) < sent then
              low = middle + 1
            else
              high = middle
            end
          end
          local entry_at = first + low * 16
          if entry_at >= log_end or sent == 0 then fast = false break end
          local time, before = unpack('<dd', state, entry_at)
          local after = before - was
          if after < 0 then after = 0 end
          after = after + amount
          total = total - before + after
          old, new = sub(state, first, entry_at - 1), pack('<dd', time, after)
          rest = sub(state, entry_at + 16, log_end - 1)
        else
          old = sub(state, first, log_end - 1)
        end
        local size_of_log = #old + #new + #rest
        used = total
        if h > 0 then empty_at = now + rate elseif size_of_log > 0 then empty_at = last_at + rate end
        out[o + 1] = pack('<dddddd', tag, 3, rate, h, total, size_of_log)
        out[o + 2], out[o + 3], out[o + 4], o = old, new, rest, o + 4
        if has_usage == 2 then uses = pack('<d', size_of_log / 16) .. old .. new .. rest end
      else
        if unit ~= u1 or not h or t > now then fast = false break end
        -- units missing at t, and units refilled since
        local x, y = w * unit + r, (now - t) * rate
        if operation == 1 and amount > 0 then
          if kind == 2 then
            if h + ahead >= limit then due = 1e20 end
          else
            local others = h + ahead
            local over = need + others + whole - limit
            local short = x + over * unit + rest
            local least = short - others * unit
            if least > y then
              local part = fmod(least, rate)
              free_at = t + (least - part) / rate + (part > 0 and 1 or 0)
            end
            if need > limit then
              due = 1e21
            elseif others > 0 and (over > 0 or over == 0 and rest > 0) then
              due = 1e20
            elseif others == 0 then
              due = free_at
            elseif short > y then
              local part = fmod(short, rate)
              due = t + (short - part) / rate + (part > 0 and 1 or 0)
            end
            if short >= EXACT then fast = false end
          end
        end
        h = h + hold
        if h < 0 then h = 0 end
        if kind == 2 then more, full = 0, h >= limit end
        if more > 0 then
          if x <= y then
            t, w, r, x, y = now, more, 0, more * unit, 0
          else
            w, x = w + more, x + more * unit
          end
        elseif more < 0 and x > y then
          local back = -more * unit - (now - sent) * rate
          if more * unit <= -EXACT or x >= EXACT or sent == 0 then fast = false end
          if back > 0 then
            x = x - y - back
            if x < 0 then x = 0 end
            t, y, r = now, 0, fmod(x, unit)
            w = (x - r) / unit
          end
        end
        if x >= EXACT then fast = false end
        if kind == 1 then
          if x > y then
            local part = fmod(x - y, unit)
            used = (x - y - part) / unit + (part > 0 and 1 or 0)
          end
          empty_at = t + x / rate
          if h > 0 and empty_at < now then empty_at = now end
          empty_at = empty_at + ((h + whole) * unit + rest) / rate
        end
        o = o + 1
        out[o] = pack('<dddddddd', tag, kind, rate, unit, t, w, r, h)
      end
      if due > wait then wait, which, where = due, k, i end
      if free_at > earliest then earliest = free_at end
      if empty_at > till then till = empty_at end
      if operation == 1 and amount > 0 then
        held = held .. pack('<dd', tag, holds == 1 and -amount or amount)
      end
      if i == 1 then views = views .. pack('<d', created) end
      views = views .. pack('<dd', used, h) .. uses
    end
    fast = fast and n > 0 and at >= length and from == size + 1 and (wait > 0 or till <= expires)
      -- a granted request leaves the queue as the first of it, or else below
      and not (place and place ~= base and (wait == 0 or which ~= k))
    if not fast then break end
    heads[k], states[k], queues[k] = { created, next, expires, tickets, earliest }, out, place
    reservations[k], wakes[k] = held, freed and not full
  end
  if fast and wait == 0 and not is_mixed then
    for k = 1, count do
      local key, head, queue = KEYS[k], heads[k], found[k][3]
      local created, next, expires, tickets = head[1], head[2], head[3], head[4]
      local due = now + ttl
      if operation == 1 and due < next then next = due end
      if wakes[k] and tickets > (queues[k] and 1 or 0) then
        local columns, _, _, first = unpack('<dddd', queue)
        if queues[k] then first = first + 48 + 16 * columns end
        wake(sub(queue, first, first + 15))
      end
      if queues[k] then
        tickets = tickets - 1
        if tickets == 0 then
          redis.call('HDEL', key, 'w', 't' .. id)
        else
          redis.call('HDEL', key, 't' .. id)
          local columns, next_due, common, base, _, starved = unpack('<dddddd', queue)
          local w = pack('<ddddddd', columns, next_due, common, base, now, starved, now)
          for i = 1, columns do
            local tag, gone = unpack('<dd', queue, 41 + 16 * i)
            w = w .. pack('<dd', tag, gone + unpack('<d', queue, base + 32 + 16 * i))
          end
          redis.call('HSET', key, 'w', w .. sub(queue, base + 48 + 16 * columns))
        end
      elseif operation == 1 and tickets > 0 then
        redis.call('HSET', key, 'w', sub(queue, 1, 48) .. pack('<d', now) .. sub(queue, 57))
      end
      states[k][1] = pack('<dddddd', 1, created, now, next, expires, 0)
      local state = table.concat(states[k])
      if operation == 1 then
        redis.call('HSET', key, 's', state, id, pack('<dd', now, due) .. reservations[k])
      else
        redis.call('HSET', key, 's', state)
        redis.call('HDEL', key, id)
      end
    end
    return pack('<ddddd', 0, now, 0, 0, 0) .. views
  end
  for k = 1, count do
    fast = fast and not (queues[k] and (k ~= which or wait == 1e21)) and (wait > 0 or not is_mixed)
      -- flows that are ahead, or priorities, are remembered
      and not (flag == 1 and k == which and heads[k][4] == 0 and found[k][3])
  end
  if fast then
    views, p = '', pos
    for k = 1, count do
      local head, state, queue, key = heads[k], found[k][1], found[k][3], KEYS[k]
      local created, next, expires, tickets = head[1], head[2], head[3], head[4]
      local waits = flag == 1 and k == which and wait < 1e21 and (queues[k] or tickets < MAX_TICKETS)
      local n, _, place, from, has_usage = unpack('<d', packed, p), nil, queues[k], 49
      local record, columns, service = '', '', nil
      has_usage, service, p = unpack('<dd', packed, p + 24)
      views = views .. pack('<d', created)
      for i = 1, n do
        local tag, kind, need, limit, rate, unit, t, w, r, h, used
        local uses = ''
        tag, kind, _, _, need, limit = unpack('<dddddd', packed, p)
        p = p + (kind == 3 and 56 or 80)
        if kind == 3 then
          _, _, rate, h, used, w, from = unpack('<dddddd', state, from)
          local first, log_end = from, from + w
          while first < log_end do
            local time, sum = unpack('<dd', state, first)
            if time > now - rate then break end
            used, first = used - sum, first + 16
          end
          if has_usage == 2 then uses = pack('<d', (log_end - first) / 16) .. sub(state, first, log_end - 1) end
          from = log_end
        else
          _, _, rate, unit, t, w, r, h, from = unpack('<dddddddd', state, from)
          used = w * unit + r - (now - t) * rate
          if kind == 2 or used < 0 then used = 0 end
          if kind == 1 then
            local part = fmod(used, unit)
            used = (used - part) / unit + (part > 0 and 1 or 0)
          end
        end
        views = views .. pack('<dd', used, h) .. uses
        if waits and not place then
          local before = 0
          if tickets > 0 then
            local own, sum = unpack('<dd', queue, #queue - 15 - 16 * (n - i))
            before = own + sum
          end
          local own = need < limit and need or limit
          record = record .. pack('<dd', own, before)
          columns = columns .. pack('<dd', tag, 0)
        end
      end
      if waits and place then
        redis.call('HSET', key, 't' .. id, pack('<d', now + TICKET_TTL))
      elseif waits then
        local due = now + TICKET_TTL
        record = id .. pack('<dddd', order, service / weight, now, 0) .. record
        if tickets > 0 then
          record = queue .. record
        else
          record = pack('<ddddddd', n, due, order, 57 + 16 * n, now, starvation, now) .. columns .. record
        end
        local head = pack('<dddddd', 1, created, now, next, expires, 0)
        redis.call('HSET', key, 's', head .. sub(state, 49), 'w', record, 't' .. id, pack('<d', due))
      end
    end
    local earliest = wait < 1e21 and heads[which][5] - now or 0
    if wait == 1e20 then wait = -1 elseif wait == 1e21 then wait = -2 else wait = wait - now end
    return pack('<ddddd', 1, now, which - 1, where - 1, wait) .. views .. pack('<d', earliest)
  end
end
