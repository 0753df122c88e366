local h = redis.call('HMGET', run, 'epoch', 'status', 'wakeSeq', 'cancel', 'cancels', 'resumes', 'cancelCalls')
if h[1] ~= epoch or ended(h[2]) then return { 'fenced' } end
local found = {}
for name in string.gmatch(awaited, '[^\n]+') do
  for _, text in ipairs(readSignals(signals, signalNames, name, 1)) do found[#found + 1] = text end
end
local endedChildren = {}
for i, child in ipairs(each) do
  local status = redis.call('HGET', child.run, 'status')
  if not status or ended(status) then endedChildren[#endedChildren + 1] = i end
end
return { 'news', tonumber(h[3]), h[4] or '', tonumber(h[5] or '0'), redis.call('HLEN', signals), found, endedChildren,
  h[2] == 'pausing' and 1 or 0, tonumber(h[6] or '0'), tonumber(h[7] or '0') }
