-- Executes the call.
for i, key in ipairs(KEYS) do parts[i], pos = read_part(key, pos) end
if (verb == 1 or verb == 6) and expected > 0 and now > expected + jump + SECOND then return answer(STALE) end
for _, part in ipairs(parts) do
  for _, rule in ipairs(part.rules) do
    if rule.valid and (now < rule[1] or now >= rule.valid) then return answer(STALE) end
  end
  found = found or redis.call('HMGET', part.key, 's', id)
  local state = found[1]
  part.mine, found = found[2], nil
  if not load(part, state) then
    return redis.error_reply('TOLLGATE unsupported state version in ' .. part.key)
  end
  if part.known > 0 and part.born ~= part.known and not part.seen then return answer(LOST) end
end
for _, part in ipairs(parts) do
  if part.last > now and part.last <= now + SECOND then now = part.last end
end
for _, part in ipairs(parts) do
  if part.last > now + SECOND then
    shift(part, now - part.last)
  elseif jump > 0 and part.last > 0 and part.last <= now - jump + SECOND / 10 then
    shift(part, jump)
  end
  bind(part)
  if part.seen and part.known > 0 and part.born ~= part.known then restore(part) end
  if now >= part.next then sweep(part) end
end
if verb == 1 then return reserve() end
if verb == 2 or verb == 3 or verb == 7 then return finish_one() end
if verb == 4 then return renew() end
if verb == 5 then return once(charge) end
if verb == 6 then return lease() end
if verb == 9 then return once(reset) end
return finish(DONE)
