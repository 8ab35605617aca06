-- A wrk script that requests KEYS keys in turn. {key} in REQUEST_PATH and REQUEST_BODY is replaced by
-- the key. Prints one line: requests, seconds, p50 and p99 in microseconds, errors.

local keys = tonumber(os.getenv("KEYS"))
local path = os.getenv("REQUEST_PATH")
local body = os.getenv("REQUEST_BODY")
local headers = { ["Content-Type"] = body ~= "" and "application/json" or nil }
local requests = {}
local number = 0

function init()
  for key = 0, keys - 1 do
    local name = "bench-" .. key
    local request_body = body ~= "" and body:gsub("{key}", name) or nil
    requests[key] = wrk.format("POST", (path:gsub("{key}", name)), headers, request_body)
  end
end

function request()
  number = (number + 1) % keys
  return requests[number]
end

function done(summary, latency)
  local e = summary.errors
  io.write(string.format("MEASURED %d %.3f %d %d %d\n", summary.requests, summary.duration / 1e6,
    latency:percentile(50), latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))
end
