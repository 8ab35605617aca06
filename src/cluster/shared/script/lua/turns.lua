-- The order of waiting requests, the same as in a process: the highest priority first, within it the flow that has had
-- the least service for its weight, within a flow the earliest. A request with a higher priority takes the place of the
-- first one, but not in a turn of a starved priority, and not once that has been the first for the time after which a
-- priority is starved. Of the same priority, only a flow takes its place that was served before: a process sends its next
-- request after an answer.
--
-- An order is a priority and a flow. A band, all of one priority, has the virtual time at which the last granted request
-- started, the time of its last grant (or since when it has tickets), the time at which it last had tickets, and its
-- flows: the virtual times at which their next requests start. A flow is charged when it is granted.
local FLOWS, MIXED_ORDERS = 17592186044416, -1
-- how long a band without tickets is remembered: processes send their next requests after an answer
local REMEMBERED = SECOND
-- the maximum number of flows that are remembered
local MAX_FLOWS = 256

local function priority_of(order) return floor(order / FLOWS) end

local function read_bands(part, text, by)
  local p = 1
  while p <= #text do
    local band, priority, count = { flows = {} }, nil, nil
    priority, band.time, band.served, band.seen, count, p = unpack('<ddddd', text, p)
    band.served, band.seen = band.served + by, band.seen + by
    for _ = 1, count do
      local flow, start
      flow, start, p = unpack('<dd', text, p)
      band.flows[flow] = start
    end
    part.bands[priority] = band
  end
end

local function band_of(part, order)
  local priority = priority_of(order)
  local band = part.bands[priority]
  if not band then
    band = { time = 0, served = now, seen = now, flows = {} }
    part.bands[priority] = band
  end
  return band
end

-- chooses the request whose turn is next
local function choose(part)
  local queue, highest, chosen, since = part.queue, nil, nil, nil
  for i, ticket in ipairs(queue) do
    local priority = priority_of(ticket.order)
    highest = highest or priority
    local served = part.bands[priority].served
    if priority < highest and served + part.starvation <= now and (not since or served < since) then
      chosen, since = i, served
    end
  end
  part.head, part.head_since = queue[chosen or 1].id, chosen and 0 or now
  return chosen or 1
end

-- sorts the tickets by their turns
local function arrange(part)
  local queue, starts, head, place = part.queue, {}, nil, nil
  part.starvation, part.head_since = part.starvation or starvation, part.head_since or now
  if #queue == 0 then return end
  for i, ticket in ipairs(queue) do
    ticket.number = ticket.number or i
    if ticket.id == part.head then head = ticket end
  end
  local function arrived_before(a, b)
    if a.since ~= b.since then return a.since < b.since end
    return a.number < b.number
  end
  table.sort(queue, arrived_before)
  -- a new flow starts with the first request, if that is of its band
  local first = head and band_of(part, head.order)
  local first_start = first and (first.flows[head.order] or first.time)
  for _, ticket in ipairs(queue) do
    local order, band = ticket.order, band_of(part, ticket.order)
    band.flows[order] = band.flows[order] or max(band.time, band == first and first_start or 0)
    ticket.start = starts[order] or band.flows[order]
    starts[order] = ticket.start + ticket.service
  end
  table.sort(queue, function(a, b)
    local one, other = priority_of(a.order), priority_of(b.order)
    if one ~= other then return one > other end
    if a.start ~= b.start then return a.start < b.start end
    return arrived_before(a, b)
  end)
  for i, ticket in ipairs(queue) do
    if ticket == head then place = i end
  end
  local is_passed = head and priority_of(queue[1].order) > priority_of(head.order)
  local is_kept = is_passed and now >= part.head_since + part.starvation
  if not head or is_passed and not is_kept then
    place = choose(part)
  elseif not is_passed and place > 1 then
    place, part.head, part.head_since = 1, queue[1].id, now
  end
  table.insert(queue, 1, table.remove(queue, place))
end

-- Charges the flow of a request that is granted, and ends the turn of its flow. One without a ticket, which passes
-- the first or fits beside it, ends no turn.
local function take_turn(part, ticket)
  local band = band_of(part, ticket.order)
  band.time = max(band.time, ticket.start)
  band.flows[ticket.order] = ticket.start + ticket.service
  band.served, band.seen = now, now
  if ticket.is_new then
    part.head, part.head_since = ticket.head, ticket.head_since
    return
  end
  for _, other in ipairs(part.queue) do
    if other.id == part.head and other.order == ticket.order then part.head = nil end
  end
end

-- Returns the common order of all tickets, or MIXED_ORDERS and the encoded bands if there are several orders, or flows
-- without tickets that are ahead.
local function encode_bands(part)
  local waiting, common, ahead, out = {}, nil, {}, {}
  local function note(order) common = (common or order) == order and order or MIXED_ORDERS end
  for _, ticket in ipairs(part.queue) do
    band_of(part, ticket.order).seen, waiting[ticket.order] = now, true
    note(ticket.order)
  end
  for priority, band in pairs(part.bands) do
    if now > band.seen + REMEMBERED then part.bands[priority] = nil end
  end
  for _, band in pairs(part.bands) do
    for order, start in pairs(band.flows) do
      if not waiting[order] and start > band.time then
        ahead[#ahead + 1] = { order = order, by = start - band.time, band = band }
        note(order)
      elseif not waiting[order] then
        band.flows[order] = nil
      end
    end
  end
  if common ~= MIXED_ORDERS then return common or MIXED_ORDERS, '' end
  if #ahead > MAX_FLOWS then
    table.sort(ahead, function(a, b) return a.by > b.by end)
    for i = MAX_FLOWS + 1, #ahead do ahead[i].band.flows[ahead[i].order] = nil end
  end
  for priority, band in pairs(part.bands) do
    local flows, count = {}, 0
    for order, start in pairs(band.flows) do
      count = count + 1
      flows[count] = pack('<dd', order, start)
    end
    if count > 0 then
      out[#out + 1] = pack('<ddddd', priority, band.time, band.served, band.seen, count) .. table.concat(flows)
    end
  end
  return MIXED_ORDERS, table.concat(out)
end
