local answers = {}
for i, attempt in ipairs(each) do answers[i] = begin(attempt.key, attempt.owner) end
settle()
return answers
