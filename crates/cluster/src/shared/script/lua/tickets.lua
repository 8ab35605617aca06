-- Tickets of waiting requests: amounts are kept for those whose turn is earlier. Field w of a hash holds
--  1. the number of columns, the time of the next check of all tickets, the common order of the tickets (or
--     MIXED_ORDERS), the position of the first ticket, the time since which it is the first (0: whatever arrives, it
--     stays the first), the time after which a lower priority has a turn, and with a common order the last grant of its
--     priority, as a band has it;
--  2. tag and removed amount of each column;
--  3. with MIXED_ORDERS, the bands that 'turns' describes;
--  4. each ticket by its turn: id, order, service, time of arrival, virtual time of its start, and in each column its
--     amount and the sum of the amounts before it, of which the removed amount is to be subtracted.
-- A ticket expires at the time in the field that is named 't' and its id, so that a renewal writes only this field.
-- the minimum time between two checks of all tickets
local MIN_CHECK = 100000
local write_tickets

-- returns the number of tickets in field w
local function count_tickets(queue)
  if not queue then return 0 end
  local columns, _, _, first = unpack('<dddd', queue)
  return (#queue - first + 1) / (48 + 16 * columns)
end

-- removes the tickets that have expired
local function check_tickets(part, moved)
  local names, kept = {}, 0
  for i, ticket in ipairs(part.queue) do names[i] = 't' .. ticket.id end
  part.next_due = now + REMEMBERED
  for i, due in ipairs(#names > 0 and redis.call('HMGET', part.key, values(names)) or {}) do
    local stored = due and unpack('<d', due)
    due = stored and min(stored + moved, now + TICKET_TTL) or 0
    if due <= now then
      redis.call('HDEL', part.key, names[i])
      remove_turn(part, kept + 1)
      part.freed = true
    else
      if due ~= stored then redis.call('HSET', part.key, names[i], pack('<d', due)) end
      kept, part.next_due = kept + 1, min(part.next_due, due)
    end
  end
end

local function read_tickets(part, moved)
  local queue, list, tags, by, _ = part.waiting, {}, {}, moved or 0, nil
  part.queue, part.bands, part.next_due = list, {}, now + REMEMBERED
  if not queue then return end
  local n, next_due, common, first, since, starved, served, p = unpack('<ddddddd', queue)
  part.next_due, part.starvation, part.head_since = next_due, starved, since > 0 and min(since + by, now) or 0
  for i = 1, n do tags[i], _, p = unpack('<dd', queue, p) end
  if p < first then read_bands(part, sub(queue, p, first - 1), by) end
  if common ~= MIXED_ORDERS then band_of(part, common).served = min(served + by, now) end
  p = first
  while p <= #queue do
    local ticket, amounts, arrived = { id = sub(queue, p, p + 15) }, {}, nil
    ticket.order, ticket.service, arrived, ticket.start, p = unpack('<dddd', queue, p + 16)
    for i = 1, n do amounts[tags[i]], _, p = unpack('<dd', queue, p) end
    ticket.since, ticket.amounts = min(arrived + by, now), amounts
    list[#list + 1] = ticket
  end
  part.head = list[1] and list[1].id
  part.woken = part.head
  if moved or is_check_due(next_due) then
    check_tickets(part, by)
    write_tickets(part)
  end
end

-- returns the tags of all tickets, those of the call first
local function ticket_columns(part)
  local columns, known = {}, {}
  for i, rule in ipairs(part.rules) do columns[i], known[rule.tag] = rule.tag, true end
  for _, ticket in ipairs(part.queue) do
    for tag in pairs(ticket.amounts) do
      if not known[tag] then columns[#columns + 1], known[tag] = tag, true end
    end
  end
  return columns
end

function write_tickets(part)
  arrange(part)
  local common, bands, served = encode_bands(part)
  -- another request is the first, which may wait for the one before
  if part.head ~= part.woken then part.freed = true end
  if #part.queue == 0 and bands == '' then
    if part.waiting then redis.call('HDEL', part.key, 'w') end
    part.waiting = false
  else
    local columns, next_due, sums = ticket_columns(part), max(part.next_due, now + MIN_CHECK), {}
    local first = 57 + 16 * #columns + #bands
    local out = { pack('<ddddddd', #columns, next_due, common, first, part.head_since, part.starvation, served) }
    for _, tag in ipairs(columns) do out[#out + 1] = pack('<dd', tag, 0) end
    out[#out + 1] = bands
    for _, ticket in ipairs(part.queue) do
      out[#out + 1] = ticket.id .. pack('<dddd', ticket.order, ticket.service, ticket.since, ticket.start)
      for i, tag in ipairs(columns) do
        local amount, before = ticket.amounts[tag] or 0, sums[i] or 0
        out[#out + 1] = pack('<dd', amount, before)
        sums[i] = before + amount
      end
    end
    part.waiting = table.concat(out)
    redis.call('HSET', part.key, 'w', part.waiting)
  end
  part.tickets, part.dirty = #part.queue, true
end

-- sets the turn and the amounts of the caller's ticket to those of the call
local function update_ticket(part, ticket)
  local service = part.service / weight
  part.is_changed = part.is_changed or ticket.service ~= service
  ticket.order, ticket.service = order, service
  for _, rule in ipairs(part.rules) do
    local amount = min(rule.need, rule.limit)
    part.is_changed = part.is_changed or ticket.amounts[rule.tag] ~= amount
    ticket.amounts[rule.tag] = amount
  end
end

-- Returns the ticket of the caller; a new one is not stored before 'enqueue'. One whose order has changed joins its
-- new flow, in which the earlier ticket goes first.
local function own_ticket(part)
  local own, place = { id = id, amounts = {}, since = now, is_new = true }, 1
  if not part.queue then read_tickets(part) end
  own.head, own.head_since = part.head, part.head_since
  for i, ticket in ipairs(part.queue) do
    if ticket.id == id then
      if ticket.order == order or operation ~= 1 then return ticket end
      own = remove_turn(part, i)
      own.start = nil
      break
    end
  end
  for i, ticket in ipairs(part.queue) do
    if ticket.order == order and ticket.since > own.since then break end
    place = i + 1
  end
  table.insert(part.queue, place, own)
  part.is_changed = true
  return own
end

-- adds the amounts that are kept for requests with earlier turns to each bucket's 'ahead'
local function add_earlier_tickets(part)
  if not part.waiting then return end
  if operation == 1 then
    update_ticket(part, own_ticket(part))
    arrange(part)
  elseif not part.queue then
    read_tickets(part)
  end
  for _, ticket in ipairs(part.queue) do
    if ticket.id == id then break end
    for tag, amount in pairs(ticket.amounts) do
      local b = part.by_tag[tag]
      if b then b.ahead = (b.ahead or 0) + amount end
    end
  end
end

-- removes the caller's ticket; returns whether it was stored, or its flow was charged
local function remove_ticket(part)
  for i, ticket in ipairs(part.queue) do
    if ticket.id == id then
      remove_turn(part, i)
      if ticket.is_new then break end
      redis.call('HDEL', part.key, 't' .. id)
      part.freed = true
      return true
    end
  end
  return part.is_charged
end

local function enqueue(part)
  local ticket = own_ticket(part)
  if ticket.is_new and #part.queue > MAX_TICKETS then
    remove_ticket(part)
    return
  end
  local due = now + TICKET_TTL
  redis.call('HSET', part.key, 't' .. id, pack('<d', due))
  part.needed_until, part.next_due = max(part.needed_until or 0, due), min(part.next_due, due)
  update_ticket(part, ticket)
  part.is_changed = part.is_changed or part.starvation ~= starvation or part.head ~= part.woken
  ticket.is_new, part.starvation, part.dirty = false, starvation, true
  -- only its time has changed
  if part.is_changed then write_tickets(part) end
end

local function dequeue(part)
  if not part.waiting then return end
  if not part.queue then
    if part.tickets == 0 then return end
    read_tickets(part)
  end
  if remove_ticket(part) then write_tickets(part) end
end

-- charges the flow of a granted request, if others wait
local function charge_turn(part)
  if part.tickets == 0 then return end
  take_turn(part, own_ticket(part))
  part.is_charged = true
end

-- wakes the first waiting request, unless that is the caller's
local function wake_first(part)
  if part.tickets == 0 or not part.waiting then return end
  local _, _, _, at = unpack('<dddd', part.waiting)
  local first = sub(part.waiting, at, at + 15)
  if first ~= id then wake(first) end
end
