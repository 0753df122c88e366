/** How long after a run was parked somebody looks at what it waits for, whatever the watches say; in ms. */
export const RECHECK_MS = 30_000;

/** Between two sweeps of the fleet that answer such runs, in ms; a little less than the time between two of one worker. */
export const RECHECK_GAP_MS = 4_500;

/**
 * The index of who waits for which object: per kind a sorted set of `<namespace>/<name>/<workflow>/<id>`, all of one score, so that
 * the runs of an object are a range by name; and the set of the kinds. A run's own list is its field `watched`.
 *
 * `enterWait(root, kinds, object, member)`, `leaveWait(...)`: note and forget that a run waits for an object.
 */
export const waitsLua: string = String.raw`
local function partsOf(object) return string.match(object, '^([^/]*/[^/]*/[^/]*)/(.*)$') end
local function enterWait(root, kinds, object, member)
  local kind, place = partsOf(object)
  redis.call('ZADD', root .. kind, 0, place .. '/' .. member)
  redis.call('SADD', kinds, kind)
end
local function leaveWait(root, kinds, object, member)
  local kind, place = partsOf(object)
  redis.call('ZREM', root .. kind, place .. '/' .. member)
  if redis.call('EXISTS', root .. kind) == 0 then redis.call('SREM', kinds, kind) end
end
`;
