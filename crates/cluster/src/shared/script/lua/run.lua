-- Executes the call.
if operation == 6 then
  for i, place in ipairs(later) do parts[i] = read_part(KEYS[place[1]], place[2]) end
else
  for i, key in ipairs(KEYS) do parts[i], pos = read_part(key, pos) end
end
local function answer(code) return pack('<ddddd', code, now, 0, 0, 0) end
if is_late then return answer(STALE) end
local known_generation
for i, part in ipairs(parts) do
  for _, rule in ipairs(part.rules) do
    if rule.valid and (now < rule[1] or now >= rule.valid) then return answer(STALE) end
  end
  local fields = found[i] or redis.call('HMGET', part.key, 's', part.id or id, 'w')
  local state = fields[1]
  part.reservation, part.waiting, part.tickets = fields[2], fields[3], count_tickets(fields[3])
  if not load(part, state) then
    return redis.error_reply('PACELINE unsupported state version in ' .. part.key)
  end
  part.is_lost = part.known_created > 0 and part.created ~= part.known_created
  -- a state that the caller has not seen: the server may have lost data since the caller was connected
  if generation > 0 and (part.created == 0 or part.created ~= part.known_created) then
    if not known_generation then
      local reports = string.match(KEYS[1], '^.-{.-}') .. '#reports'
      known_generation = redis.call('HGET', reports, 'generation')
    end
    if known_generation ~= string.format('%.0f', generation) then return answer(OUTDATED) end
  end
  if part.is_lost and not part.known_uses then return answer(LOST) end
end
for _, part in ipairs(parts) do
  if part.last > now and part.last <= now + SECOND then now = part.last end
end
for _, part in ipairs(parts) do
  id = part.id or id
  if part.last > now + SECOND then
    shift(part, now - part.last)
  elseif #jumps > 0 and part.last > 0 then
    local missed = missed_jump(part)
    if missed > 0 then shift(part, missed) end
  end
  bind(part)
  if part.is_lost then restore(part) end
  if now >= part.next then sweep(part) end
end
if operation == 1 then return reserve() end
if operation == 2 or operation == 3 or operation == 7 then return end_reservation() end
if operation == 4 then return renew() end
if operation == 5 then return execute_once(charge) end
if operation == 6 then
  for i, part in ipairs(parts) do
    id = part.id
    answers[later[i][1]] = lease(part)
  end
  return answer(LEASED) .. table.concat(answers)
end
if operation == 9 then return execute_once(reset) end
return finish(DONE)
