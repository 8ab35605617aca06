local floor, fmod, max, min = math.floor, math.fmod, math.max, math.min
local EXACT, FAR = 9007199254740992, 4503599627370496
local UNKNOWN, NEVER = 1e20, 1e21
local SECOND = 1000000

local function halves(a)
  local c = 134217729 * a
  local high = c - (c - a)
  return high, a - high
end

-- a * b, and its rounding error
local function product(a, b)
  local high = a * b
  local ah, al = halves(a)
  local bh, bl = halves(b)
  return high, ((ah * bh - high) + ah * bl + al * bh) + al * bl
end

-- floor(a * b / by), and the remainder; the quotient must be below 2^53
local function divide(a, b, by)
  local x = a * b
  if x < EXACT then
    local rest = fmod(x, by)
    return (x - rest) / by, rest
  end
  local k = floor(x / by)
  local h1, l1 = product(a, b)
  local h2, l2 = product(k, by)
  local rest = (h1 - h2) + (l1 - l2)
  while rest < 0 do k, rest = k - 1, rest + by end
  while rest >= by do k, rest = k + 1, rest - by end
  return k, rest
end

local function ceiling(x, by)
  local rest = fmod(x, by)
  return (x - rest) / by + (rest > 0 and 1 or 0)
end
