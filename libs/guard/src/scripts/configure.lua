if known and (keepsLimits or h[12] == limits) then return { 'same', revision, limits, h[13] or '' } end
redis.call('HSET', state, 'limits', limits, 'limitsBy', by)
-- A rate that an operator has set stays until an operator resets it.
setLimits(limits, h[14] and tonumber(h[14]), isLoss)
return { 'changed', revision + 1, h[12] or '', h[13] or '' }
