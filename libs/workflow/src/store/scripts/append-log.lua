local h = redis.call('HMGET', run, 'epoch', 'status', 'createdAt')
if createdAt ~= '' and h[3] ~= createdAt then return 'fenced' end
if (epoch ~= '' and h[1] ~= epoch) or not h[2] or ended(h[2]) then return 'fenced' end
if epoch ~= '' then redis.call('HSET', run, 'logged', logged) end
for _, line in ipairs(each) do redis.call('RPUSH', logs, line.text) end
redis.call('LTRIM', logs, -MOST_LINES, -1)
redis.call('PEXPIRE', logs, LOGS_KEPT_MS)
return 'appended'
