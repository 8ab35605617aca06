-- Concurrency limits, stored in the layout of a token bucket.
local concurrency = {}

function concurrency.fresh(tag)
  return { tag = tag, kind = 2, held = 0 }
end

function concurrency.load(tag, state, pos)
  local b, _ = { tag = tag, kind = 2 }, nil
  _, _, _, _, _, b.held, pos = unpack('<dddddd', state, pos)
  return b, pos
end

function concurrency.save(b)
  return pack('<dddddddd', b.tag, 2, 0, 0, 0, 0, 0, b.held)
end

function concurrency.check(b, rule, _, _, ahead)
  if b.held + ahead < rule.limit then return 0 end
  return UNKNOWN
end

function concurrency.available(b, rule)
  return rule.limit - b.held
end

local function nothing() end
local function zero() return 0 end
concurrency.bind, concurrency.take = nothing, nothing
concurrency.correct, concurrency.move, concurrency.restore = nothing, nothing, nothing
concurrency.used, concurrency.outstanding, concurrency.empty_at = zero, zero, zero
