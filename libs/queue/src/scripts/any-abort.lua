-- A full Redis rejects commands that need memory, unless the script has already written. This command needs none and has no
-- effect, so that attempts can end, which frees memory (redis.io, "Eval scripts with memory limits").
redis.call('PERSIST', timers)

local anyAbort = redis.call('EXISTS', aborts) == 1
