local function forget(ended, index, statuses, beforeMs, most)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', ended, '-inf', beforeMs, 'LIMIT', 0, most)) do
    redis.call('ZREM', ended, id)
    redis.call('ZREM', index, id)
    unlabel(statuses, id)
    for _, status in ipairs({ 'done', 'failed', 'cancelled' }) do redis.call('ZREM', statuses .. status, id) end
  end
end
