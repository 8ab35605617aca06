-- Tickets of waiting requests: amounts are kept for earlier requests.
local GRACE, MAX_WAIT = 250000, 30 * SECOND

local function read_tickets(part, moved)
  local list, field = {}, part.tickets > 0 and redis.call('HGET', part.key, 'w')
  local p = 1
  while field and p <= #field do
    local ticket, n = { id = sub(field, p, p + 15), amounts = {} }, nil
    ticket.due, n, p = unpack('<dd', field, p + 16)
    ticket.due = ticket.due + (moved or 0)
    for i = 1, n do
      local tag, amount
      tag, amount, p = unpack('<dd', field, p)
      ticket.amounts[i] = { tag, amount }
    end
    if ticket.due > now then list[#list + 1] = ticket end
  end
  part.queue = list
end

local function write_tickets(part)
  if #part.queue == 0 then
    if part.tickets > 0 then redis.call('HDEL', part.key, 'w') end
  else
    local out = {}
    for _, ticket in ipairs(part.queue) do
      out[#out + 1] = ticket.id .. pack('<dd', ticket.due, #ticket.amounts)
      for _, pair in ipairs(ticket.amounts) do out[#out + 1] = pack('<dd', pair[1], pair[2]) end
    end
    redis.call('HSET', part.key, 'w', table.concat(out))
  end
  part.tickets, part.dirty = #part.queue, true
end

-- adds the amounts that are kept for earlier requests to each bucket's 'ahead'
local function add_earlier_tickets(part)
  if part.tickets == 0 then return end
  read_tickets(part)
  for _, ticket in ipairs(part.queue) do
    if ticket.id == id then break end
    for _, pair in ipairs(ticket.amounts) do
      local b = part.by_tag[pair[1]]
      if b then b.ahead = (b.ahead or 0) + pair[2] end
    end
  end
end

local function enqueue(part, wait)
  local place
  if not part.queue then read_tickets(part) end
  for i, ticket in ipairs(part.queue) do
    if ticket.id == id then place = i end
  end
  if not place and #part.queue >= 256 then return end
  place = place or #part.queue + 1
  local ticket = { id = id, amounts = {} }
  ticket.due = now + GRACE + (wait == UNKNOWN and GRACE or min(wait - now, MAX_WAIT))
  for i, rule in ipairs(part.rules) do ticket.amounts[i] = { rule.tag, min(rule.need, rule.limit) } end
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
