local answers = {}
for i, attempt in ipairs(each) do
  local state, priority = endAttempt(attempt)
  answers[i] = { state, priority }
end
settleEnds()
return answers
