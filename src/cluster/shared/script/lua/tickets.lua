-- Tickets of waiting requests: amounts are kept for earlier requests. Field q of a hash holds the
-- number of columns, the earliest possible expiry, and tag and removed amount of each column; then
-- each ticket in order of arrival: its id, and its amount and the sum of the amounts before it in each
-- column, of which the removed amount is to be subtracted. A ticket expires at the time in the field
-- that is named 't' and its id, so that a renewal writes only this field.
-- the minimum time between two checks of all tickets
local MIN_CHECK = 100000
local write_tickets

local function read_tickets(part, moved)
  local list, queue, tags, n, p, next_due, _ = {}, part.tickets > 0 and part.waiting, {}, 0, 1, 0, nil
  part.queue = list
  if not queue then return end
  n, next_due, p = unpack('<dd', queue)
  for i = 1, n do tags[i], _, p = unpack('<dd', queue, p) end
  local all, names = {}, {}
  while p <= #queue do
    local ticket = { id = sub(queue, p, p + 15), amounts = {} }
    p = p + 16
    for i = 1, n do ticket.amounts[tags[i]], _, p = unpack('<dd', queue, p) end
    all[#all + 1], names[#names + 1] = ticket, 't' .. ticket.id
  end
  for i, due in ipairs(redis.call('HMGET', part.key, values(names))) do
    local ticket = all[i]
    ticket.due = due and unpack('<d', due) + (moved or 0) or 0
    if ticket.due <= now and (now >= next_due or moved) then
      redis.call('HDEL', part.key, names[i])
      part.freed = true
    else
      list[#list + 1] = ticket
      if moved then redis.call('HSET', part.key, names[i], pack('<d', ticket.due)) end
    end
  end
  if moved or now >= next_due then write_tickets(part) end
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
  if #part.queue == 0 then
    if part.tickets > 0 then redis.call('HDEL', part.key, 'q') end
    part.waiting = false
  else
    local columns, next_due, sums = ticket_columns(part), EXACT, {}
    for _, ticket in ipairs(part.queue) do next_due = min(next_due, ticket.due) end
    next_due = max(next_due, now + MIN_CHECK)
    local out = { pack('<dd', #columns, next_due) }
    for _, tag in ipairs(columns) do out[#out + 1] = pack('<dd', tag, 0) end
    for _, ticket in ipairs(part.queue) do
      out[#out + 1] = ticket.id
      for i, tag in ipairs(columns) do
        local amount, before = ticket.amounts[tag] or 0, sums[i] or 0
        out[#out + 1] = pack('<dd', amount, before)
        sums[i] = before + amount
      end
    end
    part.waiting = table.concat(out)
    redis.call('HSET', part.key, 'q', part.waiting)
  end
  part.tickets, part.dirty = #part.queue, true
end

-- adds the amounts that are kept for earlier requests to each bucket's 'ahead'
local function add_earlier_tickets(part)
  if part.tickets == 0 then return end
  if not part.queue then read_tickets(part) end
  for _, ticket in ipairs(part.queue) do
    if ticket.id == id then break end
    for tag, amount in pairs(ticket.amounts) do
      local b = part.by_tag[tag]
      if b then b.ahead = (b.ahead or 0) + amount end
    end
  end
end

local function renew_ticket(part, ticket)
  ticket.due = now + TICKET_TTL
  redis.call('HSET', part.key, 't' .. id, pack('<d', ticket.due))
  part.needed_until = max(part.needed_until or 0, ticket.due)
end

local function enqueue(part)
  local place
  if not part.queue then read_tickets(part) end
  for i, ticket in ipairs(part.queue) do
    if ticket.id == id then place = i end
  end
  if not place and #part.queue >= MAX_TICKETS then return end
  place = place or #part.queue + 1
  local ticket = { id = id, amounts = {} }
  renew_ticket(part, ticket)
  for _, rule in ipairs(part.rules) do ticket.amounts[rule.tag] = min(rule.need, rule.limit) end
  part.queue[place] = ticket
  write_tickets(part)
end

local function dequeue(part)
  if part.tickets == 0 then return end
  if not part.queue then read_tickets(part) end
  local kept = {}
  for _, ticket in ipairs(part.queue) do
    if ticket.id ~= id then kept[#kept + 1] = ticket end
  end
  if #kept == part.tickets then return end
  part.queue, part.freed = kept, true
  redis.call('HDEL', part.key, 't' .. id)
  write_tickets(part)
end

-- wakes the first waiting request, unless that is the caller's
local function wake_first(part)
  if part.tickets == 0 then return end
  local at = 17 + 16 * unpack('<d', part.waiting)
  local first = sub(part.waiting, at, at + 15)
  if first ~= id then wake(first) end
end
