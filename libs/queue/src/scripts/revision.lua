-- Whether a revision differs from that of an attempt. "versions" are those that the attempt read or wrote, between spaces.
local function isOtherRevision(revision, ofAttempt, versions)
  if revision == '' or revision == ofAttempt then return false end
  local uid, version = string.match(revision, '^(%S*) @(.*)$')
  if not version or uid ~= string.match(ofAttempt, '^(%S*) ') then return true end
  return not string.find(versions, ' ' .. version .. ' ', 1, true)
end
