-- Whether Redis is full. Decided before the script writes, after which Redis rejects nothing. The command has no effect.
local isFull = type(redis.pcall('SET', bull .. 'full', '', 'XX')) == 'table'
