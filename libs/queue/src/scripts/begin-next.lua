local jobs, locks, slots, answers = redis.call('LRANGE', active, 0, most), {}, {}, {}
for i, jobId in ipairs(jobs) do locks[i] = bull .. jobId .. ':lock' end
for i, slot in ipairs(each) do
  slots[slot.token] = i
  answers[i] = {}
end
if #locks == 0 then return answers end
for i, token in ipairs(redis.call('MGET', unpack(locks))) do
  local at = token and slots[token]
  if at and each[at].finishing ~= jobs[i] then
    local member = redis.call('HGET', bull .. jobs[i], 'deid')
    if member then
      local answer = begin(hashes .. member, each[at].owner)
      answers[at] = { jobs[i], member, unpack(answer) }
    end
    slots[token] = nil
  end
end
settle()
return answers
