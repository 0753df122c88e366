local h = redis.call('HMGET', run, 'epoch', 'status')
if h[1] ~= epoch or ended(h[2]) then return 'fenced' end
redis.call('HSET', run, 'logged', logged)
for _, line in ipairs(each) do redis.call('RPUSH', logs, line.text) end
redis.call('LTRIM', logs, -MOST_LINES, -1)
redis.call('PEXPIRE', logs, LOGS_KEPT_MS)
return 'appended'
