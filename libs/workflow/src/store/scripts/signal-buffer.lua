local function signalMember(name, seq) return redis.sha1hex(name) .. string.format('%016d', seq) end
local function addSignal(run, signals, signalNames, name, text)
  local seq = redis.call('HINCRBY', run, 'signalSeq', 1)
  redis.call('HSET', signals, seq, text)
  redis.call('ZADD', signalNames, 0, signalMember(name, seq))
  redis.call('HINCRBY', run, 'signalBytes', #text)
  return seq
end
local function dropSignal(run, signals, signalNames, name, seq)
  local bytes = redis.call('HSTRLEN', signals, seq)
  if redis.call('HDEL', signals, seq) == 0 then return false end
  redis.call('ZREM', signalNames, signalMember(name, seq))
  redis.call('HINCRBY', run, 'signalBytes', -bytes)
  return true
end
local function readSignals(signals, signalNames, name, most)
  local prefix = redis.sha1hex(name)
  local found = {}
  for _, member in ipairs(redis.call('ZRANGEBYLEX', signalNames, '[' .. prefix, '(' .. prefix .. 'g', 'LIMIT', 0, most)) do
    local seq = tonumber(string.sub(member, #prefix + 1))
    found[#found + 1] = int(seq)
    found[#found + 1] = redis.call('HGET', signals, int(seq))
  end
  return found
end
