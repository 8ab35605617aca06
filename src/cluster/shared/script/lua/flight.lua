-- Concurrency limits, stored in the layout of a token bucket.
local flight = {}

function flight.fresh(tag)
  return { tag = tag, kind = 2, held = 0 }
end

function flight.load(tag, state, pos)
  local b, _ = { tag = tag, kind = 2 }, nil
  _, _, _, _, _, b.held, pos = unpack('<dddddd', state, pos)
  return b, pos
end

function flight.save(b)
  return pack('<dddddddd', b.tag, 2, 0, 0, 0, 0, 0, b.held)
end

function flight.check(b, rule, _, _, ahead)
  if b.held + ahead < rule.limit then return 0 end
  return UNKNOWN
end

function flight.room(b, rule)
  return rule.limit - b.held
end

local function nothing() end
local function zero() return 0 end
flight.bind, flight.take, flight.correct, flight.move = nothing, nothing, nothing, nothing
flight.used, flight.left, flight.gone = zero, zero, zero
