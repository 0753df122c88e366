-- The fleet's order of token requests: a score is the rank's base plus the tokens that were booked before it.
local function baseOf(each) return each * ORDER.rankStep end

-- Returns the first place of a rank, and removes workers that missed their turn.
local function firstPlace(each, nowUs)
  while true do
    local head = redis.call('ZRANGEBYSCORE', order, baseOf(each), '(' .. string.format('%.0f', baseOf(each + 1)), 'WITHSCORES',
      'LIMIT', 0, 1)
    if not head[1] then return nil end
    if head[1] == worker or (tonumber(redis.call('HGET', turns, head[1])) or 0) > nowUs then
      return tonumber(head[2]) - baseOf(each)
    end
    redis.call('ZREM', order, head[1])
    redis.call('HDEL', turns, head[1])
  end
end

-- Returns the tokens that others may take before `place`, or before a new place.
local function tokensAhead(place, booked, nowUs)
  local ahead = 0
  for each = 1, rank do
    local first = firstPlace(each, nowUs)
    if first then ahead = ahead + (each == rank and place or booked[each]) - first end
  end
  return ahead
end

-- Returns the place of this worker in its class. A worker that takes a turn loses its place in another class.
local function ownPlace(takesTurn)
  local score = tonumber(redis.call('ZSCORE', order, worker))
  if not score then return nil end
  if score >= baseOf(rank) and score < baseOf(rank + 1) then return score - baseOf(rank) end
  if takesTurn then
    redis.call('ZREM', order, worker)
    redis.call('HDEL', turns, worker)
  end
  return nil
end
