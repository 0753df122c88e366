local function ended(status) return status == 'done' or status == 'failed' or status == 'cancelled' end
