local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function int(number) return string.format('%.0f', number) end
