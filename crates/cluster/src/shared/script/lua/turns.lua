-- The order of waiting requests, the same as in a process: the highest priority first, within it the flow that has had
-- the least service for its weight, within a flow the earliest. A request with a higher priority takes the place of the
-- first one, but not in a turn of a starved priority, and not once that has been the first for the time after which a
-- priority is starved. Of the same priority, only a flow takes its place that was served before, under the same
-- conditions: a process sends its next request after an answer.
--
-- An order is a priority and a flow. A band, all of one priority, has the virtual time at which the last granted request
-- started, the time of its last grant (or since when it has tickets), the time at which it last had tickets, and its
-- flows without tickets that are ahead: the virtual times at which their next requests start. A flow is charged when a
-- request of it is granted.
local FLOWS, MIXED_ORDERS = 17592186044416, -1
-- How long the flows of a band without tickets are remembered: processes send their next requests after an answer. The
-- last grant of a band whose last ticket was not granted is remembered for the time after which a priority is starved,
-- up to a minute: requests that give up and are sent again don't wait anew for the turn of their priority.
local REMEMBERED, MAX_OWED = SECOND, 60 * SECOND
-- the maximum number of flows that are remembered
local MAX_FLOWS = 256

local function read_bands(part, text, by)
  local p = 1
  while p <= #text do
    local band, count = { flows = {} }, nil
    band.priority, band.time, band.served, band.seen, count, p = unpack('<ddddd', text, p)
    band.served, band.seen = min(band.served + by, now), min(band.seen + by, now)
    for _ = 1, count do
      local flow, start
      flow, start, p = unpack('<dd', text, p)
      band.flows[flow] = start
    end
    part.bands[band.priority] = band
  end
end

local function band_of(part, order)
  local priority = floor(order / FLOWS)
  local band = part.bands[priority]
  if not band then
    band = { priority = priority, time = 0, served = now, seen = now, flows = {} }
    part.bands[priority] = band
  end
  return band
end

-- chooses the request whose turn is next
local function choose(part)
  local queue, highest, chosen, since = part.queue, nil, nil, nil
  for i, ticket in ipairs(queue) do
    highest = highest or ticket.priority
    local served = part.bands[ticket.priority].served
    if ticket.priority < highest and served + part.starvation <= now and (not since or served < since) then
      chosen, since = i, served
    end
  end
  part.head, part.head_since = queue[chosen or 1].id, chosen and 0 or now
  return chosen or 1
end

local function goes_before(a, b)
  if a.priority ~= b.priority then return a.priority > b.priority end
  if a.start ~= b.start then return a.start < b.start end
  return a.since < b.since
end

-- Sorts the tickets by their turns. Those of a flow are in order of arrival before.
local function arrange(part)
  local queue, starts, ends, head, place = part.queue, {}, {}, nil, nil
  part.starts = starts
  for _, band in pairs(part.bands) do band.first = nil end
  part.starvation, part.head_since = part.starvation or starvation, part.head_since or now
  if #queue == 0 then return end
  for _, ticket in ipairs(queue) do
    local band = band_of(part, ticket.order)
    local start = ticket.start and (band.flows[ticket.order] or ticket.start)
    if ticket.id == part.head then head = ticket end
    -- the start of a ticket counts if it is the first of its flow
    if start and not starts[ticket.order] then
      starts[ticket.order], band.first = start, min(band.first or start, start)
    end
  end
  for i = 1, #queue do
    local ticket = queue[i]
    local order, band, j = ticket.order, band_of(part, ticket.order), i - 1
    if not ends[order] then
      -- a new flow starts with the first request of its band
      starts[order] = starts[order] or band.flows[order] or max(band.time, band.first or 0)
    end
    ticket.priority, ticket.start = band.priority, ends[order] or starts[order]
    ends[order] = ticket.start + ticket.service
    while j > 0 and goes_before(ticket, queue[j]) do
      queue[j + 1], j = queue[j], j - 1
    end
    queue[j + 1] = ticket
  end
  for i, ticket in ipairs(queue) do
    if ticket == head then place = i end
  end
  if not head or place > 1 and now < part.head_since + part.starvation then
    if head and queue[1].priority == head.priority then
      place, part.head, part.head_since = 1, queue[1].id, now
    else
      place = choose(part)
    end
  end
  if place > 1 then table.insert(queue, 1, table.remove(queue, place)) end
end

-- Removes a ticket; the next one of its flow starts at its time, unless the flow was charged.
local function remove_turn(part, place)
  local removed, is_first = table.remove(part.queue, place), true
  for i = 1, place - 1 do is_first = is_first and part.queue[i].order ~= removed.order end
  local band = band_of(part, removed.order)
  if not removed.is_new then
    band.seen = now
    if is_first then band.flows[removed.order] = band.flows[removed.order] or removed.start end
  end
  return removed
end

-- Charges the flow of a request that is granted, and ends the turn of its flow. One without a ticket, which passes
-- the first or fits beside it, ends no turn.
local function take_turn(part, ticket)
  local band, start = band_of(part, ticket.order), part.starts[ticket.order]
  band.time, band.served, band.seen = max(band.time, start), now, now
  band.flows[ticket.order] = start + ticket.service
  if ticket.is_new then
    part.head, part.head_since = ticket.head, ticket.head_since
    return
  end
  for _, other in ipairs(part.queue) do
    if other.id == part.head and other.order == ticket.order then part.head = nil end
  end
end

-- Returns the common order of all tickets, or MIXED_ORDERS and the encoded bands if there are several orders, flows
-- without tickets that are ahead, or bands without tickets; and the last grant of the common order's band.
local function encode_bands(part)
  local waiting, common, ahead, bands, out = {}, nil, {}, 0, {}
  for _, ticket in ipairs(part.queue) do
    band_of(part, ticket.order).seen, waiting[ticket.order] = now, true
    common = (common or ticket.order) == ticket.order and ticket.order or MIXED_ORDERS
  end
  for priority, band in pairs(part.bands) do
    local is_recent = now < band.seen + REMEMBERED
    local is_owed_a_turn = band.seen > band.served and now < band.seen + min(part.starvation, MAX_OWED)
    band.ahead = {}
    if not is_recent and not is_owed_a_turn then
      part.bands[priority] = nil
    else
      bands = bands + 1
      for order, start in pairs(band.flows) do
        if is_recent and start > band.time and not waiting[order] then
          ahead[#ahead + 1] = { band = band, by = start - band.time, text = pack('<dd', order, start) }
          common = (common or order) == order and order or MIXED_ORDERS
        end
      end
    end
  end
  if #part.queue > 0 and common ~= MIXED_ORDERS and bands == 1 then
    return common, '', band_of(part, common).served
  end
  if #ahead > MAX_FLOWS then
    table.sort(ahead, function(a, b) return a.by > b.by end)
  end
  for i = 1, min(#ahead, MAX_FLOWS) do
    local flows = ahead[i].band.ahead
    flows[#flows + 1] = ahead[i].text
  end
  for priority, band in pairs(part.bands) do
    out[#out + 1] = pack('<ddddd', priority, band.time, band.served, band.seen, #band.ahead)
      .. table.concat(band.ahead)
  end
  return MIXED_ORDERS, table.concat(out), 0
end
