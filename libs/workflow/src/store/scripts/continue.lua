local h = redis.call('HMGET', run, 'epoch', 'status', 'continuedFrom', 'createdAt', 'watched', 'input', 'cancelledAt')
-- The same request again, since a lost connection repeats the call.
if h[1] ~= epoch then return h[3] == epoch and 'continued' or 'fenced' end
if ended(h[2]) then return 'fenced' end
local live, newest = liveCodes(codes), tonumber(version)
for _, code in pairs(live) do newest = math.max(newest, tonumber(string.match(code, '^%d+'))) end
-- The records of accepted updates are kept with their answers.
local all = redis.call('HGETALL', answers)
for at = 1, #all, 2 do
  if string.sub(all[at + 1], 1, 8) == '{"step":' then
    local step = cjson.decode(all[at + 1]).step
    local record = redis.call('HGET', steps, step)
    if record and #record <= MAX_KEPT_ANSWER then
      redis.call('HSET', answers, all[at], '{"record":' .. cjson.encode(record) .. ',"step":' .. cjson.encode(step) .. '}')
      redis.call('RPUSH', answeredIds, all[at])
    else
      redis.call('HDEL', answers, all[at])
    end
  end
end
while redis.call('LLEN', answeredIds) > MOST_ANSWERED do
  redis.call('HDEL', answers, redis.call('LPOP', answeredIds))
end
for _, key in ipairs({ answers, answeredIds }) do redis.call('PEXPIRE', key, ANSWERS_KEPT_MS) end
redis.call('DEL', steps)
leaveWaits(waitRoot, waitKinds, rechecks, run, id, h[5], '', member)
if isPaused(h[2]) then
  acknowledgePause(run, id, statuses, h[4])
  redis.call('HSET', run, 'pausedFrom', 'queued')
  redis.call('ZREM', wakes, id)
else
  move(statuses, id, h[2], 'queued', h[4])
  redis.call('HSET', run, 'status', 'queued')
  redis.call('ZADD', wakes, now + GRACE_MS, id)
end
redis.call('HSETNX', run, 'firstInput', h[6])
redis.call('HSETNX', run, 'round', '1')
redis.call('HINCRBY', run, 'round', 1)
redis.call('HDEL', run, 'parsedInput', 'continuedBy', 'warnings', 'logged', 'blockedError')
-- A cancellation that was not thrown is thrown in the next round.
if h[7] then redis.call('HDEL', run, 'cancel', 'cancelledAt', 'cancels') end
if published ~= '' then redis.call('HSET', run, 'published', published) end
redis.call('HSET', run, 'version', int(newest), 'input', input, 'seq', '0', 'roundAt', int(now),
  'epoch', int(math.max(tonumber(epoch) + 1, now)), 'continuedFrom', epoch, 'reason', '', 'waits', '', 'awaited', '',
  'waitingUntil', '', 'died', '', 'isExecuted', '', 'handedBack', '0')
return 'continued'
