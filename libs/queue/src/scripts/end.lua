local answers = {}
for i, attempt in ipairs(each) do
  local isStored, state, priority = pcall(endAttempt, attempt)
  if not isStored then
    -- Those before it are complete.
    settleEnds()
    error(state)
  end
  answers[i] = { state, priority }
end
settleEnds()
return answers
