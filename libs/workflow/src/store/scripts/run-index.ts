/**
 * The index of runs by status: a sorted set of ids for each, by creation. `statuses` is what their names begin with.
 * `move(statuses, id, from, to, createdAt)` changes the set that a run is in: two commands of O(log n).
 */
export const moveLua: string = String.raw`
local function move(statuses, id, from, to, createdAt)
  if from == to then return end
  if from then redis.call('ZREM', statuses .. from, id) end
  redis.call('ZADD', statuses .. to, createdAt, id)
end
`;

/**
 * `forget(ended, index, statuses, beforeMs, most)`: takes runs that ended before that time out of the index; what is kept of
 * them has expired by then.
 */
export const forgetLua: string = String.raw`
local function forget(ended, index, statuses, beforeMs, most)
  for _, id in ipairs(redis.call('ZRANGEBYSCORE', ended, '-inf', beforeMs, 'LIMIT', 0, most)) do
    redis.call('ZREM', ended, id)
    redis.call('ZREM', index, id)
    for _, status in ipairs({ 'done', 'failed', 'cancelled' }) do redis.call('ZREM', statuses .. status, id) end
  end
end
`;
