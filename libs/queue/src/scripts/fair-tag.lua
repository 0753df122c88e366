local CLASS_DISTANCE = { [0] = 0, 0, 16, 64, 1024 }
local MAX_PRIORITY = 2097151
-- Distance from v from which a request counts as part of a backlog.
local AGING_BACKLOG = 64

local function tenantOf(member) return string.match(member, '^[^/]*/[^/]*/[^/]*/([^/]*)/') or '_' end

local function readFair(fair, class, member)
  local tenant = tenantOf(member)
  local flow = class .. ':' .. tenant
  local h = redis.call('HMGET', fair, 'v', 'base', flow, 'w:' .. tenant)
  return { v = tonumber(h[1]) or 0, base = tonumber(h[2]) or 0, flow = flow, last = tonumber(h[3]) or 0,
    cost = 1 / (tonumber(h[4]) or 1) }
end

local function tagOf(state) return math.max(state.v, state.last) + state.cost end

local function takeTag(fair, state)
  state.last = tagOf(state)
  redis.call('HSET', fair, state.flow, state.last)
  return state.last
end

local function priorityOf(tag, base, class)
  return math.max(1, math.min(MAX_PRIORITY, math.floor(tag - base) + CLASS_DISTANCE[class]))
end
