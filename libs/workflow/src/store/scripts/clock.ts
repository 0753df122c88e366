/** `now`: Redis's time in ms, so that no worker's clock decides when a wait is over. `int`: a number as plain digits. */
export const clockLua: string = String.raw`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function int(number) return string.format('%.0f', number) end
local function ended(status) return status == 'done' or status == 'failed' or status == 'cancelled' end
`;

/** How long after a wake-up should have come somebody looks whether it did, in ms. */
export const GRACE_MS = 10_000;
/** How long a run may be held before it is asked for again, in ms; a follow-up of an activation that goes on does no harm. */
export const HELD_CHECK_MS = 60_000;
