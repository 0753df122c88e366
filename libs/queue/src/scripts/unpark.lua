local claimed, cursor = string.match(redis.call('GET', resuming) or '', '^(%d+) (.*)$')
if not claimed then return { 0, 0 } end
if claimMs == 0 and now < tonumber(claimed) then return { 0, 0 } end
local from = cursor == '' and '-' or '(' .. cursor
local members = redis.call('ZRANGEBYLEX', parked, from, '+', 'LIMIT', 0, limit)
local resumed = 0
for _, member in ipairs(members) do
  if not isPaused(pauses, member) then
    -- No claim ends at 0, so the acknowledgement of an earlier claim does not remove it.
    redis.call('ZADD', firing, 0, member)
    redis.call('ZREM', parked, member)
    local parks = redis.call('HGET', hashes .. member, 'parks')
    if parks and string.sub(parks, -1) == '-' then
      redis.call('HSET', hashes .. member, 'parks', parks .. string.format('%d', now))
    end
    resumed = resumed + 1
  end
end
local more = #members == limit
if more then redis.call('SET', resuming, string.format('%d %s', now + claimMs, members[limit])) else redis.call('DEL', resuming) end
return { resumed, more and 1 or 0 }
