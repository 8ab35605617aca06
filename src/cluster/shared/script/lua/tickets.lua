-- Tickets of waiting requests: amounts are kept for earlier requests. Field q of a hash holds the
-- number of columns, the earliest expiry, and tag and removed amount of each column; then each
-- ticket in order of arrival: its id, its expiry, and its amount and the sum of the amounts before it
-- in each column, of which the removed amount is to be subtracted.
local TICKET_TTL, MAX_TICKETS = SECOND, 256

local function read_tickets(part, moved)
  local list, field, tags, n, p, _ = {}, part.tickets > 0 and part.waiting, {}, 0, 1, nil
  if field then n, _, p = unpack('<dd', field) end
  for i = 1, n do tags[i], _, p = unpack('<dd', field, p) end
  while field and p <= #field do
    local ticket = { id = sub(field, p, p + 15), amounts = {} }
    ticket.due, p = unpack('<d', field, p + 16)
    ticket.due = ticket.due + (moved or 0)
    for i = 1, n do ticket.amounts[tags[i]], _, p = unpack('<dd', field, p) end
    if ticket.due > now then list[#list + 1] = ticket end
  end
  part.queue = list
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

local function write_tickets(part)
  if #part.queue == 0 then
    if part.tickets > 0 then redis.call('HDEL', part.key, 'q') end
    part.waiting = false
  else
    local columns, next_due, sums = ticket_columns(part), EXACT, {}
    for _, ticket in ipairs(part.queue) do next_due = min(next_due, ticket.due) end
    local out = { pack('<dd', #columns, next_due) }
    for _, tag in ipairs(columns) do out[#out + 1] = pack('<dd', tag, 0) end
    for _, ticket in ipairs(part.queue) do
      out[#out + 1] = ticket.id .. pack('<d', ticket.due)
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

local function enqueue(part)
  local place
  if not part.queue then read_tickets(part) end
  for i, ticket in ipairs(part.queue) do
    if ticket.id == id then place = i end
  end
  if not place and #part.queue >= MAX_TICKETS then return end
  place = place or #part.queue + 1
  local ticket = { id = id, due = now + TICKET_TTL, amounts = {} }
  for _, rule in ipairs(part.rules) do ticket.amounts[rule.tag] = min(rule.need, rule.limit) end
  part.queue[place] = ticket
  write_tickets(part)
  part.needed_until = max(part.needed_until or 0, ticket.due)
end

local function dequeue(part)
  if part.tickets == 0 then return end
  if not part.queue then read_tickets(part) end
  local kept = {}
  for _, ticket in ipairs(part.queue) do
    if ticket.id ~= id then kept[#kept + 1] = ticket end
  end
  if #kept == part.tickets then return end
  part.queue = kept
  write_tickets(part)
end

-- renews the ticket of this id, which keeps its place
local function renew_ticket(part)
  if part.tickets == 0 then return end
  if not part.queue then read_tickets(part) end
  for _, ticket in ipairs(part.queue) do
    if ticket.id == id then
      ticket.due = now + TICKET_TTL
      part.needed_until = max(part.needed_until or 0, ticket.due)
      write_tickets(part)
    end
  end
end
