local held = redis.call('HGET', state, 'held') or ''
local left, accepted = {}, {}
for kind in string.gmatch(held, '%S+') do
  local isAccepted = string.find(' ' .. kinds .. ' ', ' ' .. kind .. ' ', 1, true)
  table.insert(isAccepted and accepted or left, kind)
end
if #accepted > 0 then
  redis.call('HSET', state, 'held', table.concat(left, ' '), 'acceptedAt', now, 'acceptedBy', by)
end
return { table.concat(accepted, ' '), table.concat(left, ' ') }
