local last = redis.call('XREVRANGE', index, '+', '-', 'COUNT', 1)[1]
local sum = last and tonumber(last[2][4]) or 0
for _, row in ipairs(each) do
  sum = sum + row.bytes
  redis.call('XADD', index, '*', 'r', row.text, 's', string.format('%.0f', sum))
end
local first = redis.call('XRANGE', index, '-', '+', 'COUNT', 1)[1]
if not first then return { 0 } end
-- Excludes the first row's own bytes, because earlier rows were dropped.
local kept = sum - tonumber(first[2][4])
local answer = { kept }
local free = math.max(kept - budget, 0) + beyond
if free == 0 then return answer end
local from = tonumber(first[2][4])
for _, row in ipairs(redis.call('XRANGE', index, '-', '+', 'COUNT', most)) do
  if tonumber(row[2][4]) - from > free then break end
  answer[#answer + 1] = row[1]
  answer[#answer + 1] = row[2][2]
end
return answer
