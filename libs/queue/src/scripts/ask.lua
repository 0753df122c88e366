-- Returns class, since, tag, floor and triggers without a table.
local ASK_OF_RUN = '^(%d) (%d+) (%S+) %d (%S+) %d+\n(.*)$'
local function readAsk(text)
  local class, since, tag, news, floor, count, triggers =
    string.match(text or '', '^(%d) (%d+) (%S+) (%d) (%S+) (%d+)\n(.*)$')
  return { class = tonumber(class) or 3, since = since or '0', tag = tonumber(tag) or 0, news = news or '0',
    floor = floor or '-', count = tonumber(count) or 0, triggers = triggers or '' }
end

local function writeAsk(a)
  return a.class .. ' ' .. a.since .. ' ' .. a.tag .. ' ' .. a.news .. ' ' .. a.floor .. ' ' .. a.count .. '\n' .. a.triggers
end
