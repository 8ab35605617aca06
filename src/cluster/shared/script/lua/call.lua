-- tollgate: one decision over all buckets of a call. Times are microseconds, and every number is a
-- whole one below 2^53. KEYS: a hash for each part. ARGV: the id, the call.
local unpack, pack, sub = struct.unpack, struct.pack, string.sub
local id, packed = ARGV[1], ARGV[2]
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local verb, flag, ttl, expected, jump, pos = unpack('<ddddd', packed)
