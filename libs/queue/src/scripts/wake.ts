import { fairTagLua } from "./fair-tag.ts";
import { newsLua } from "./news.ts";
import { defineScript, type Script } from "@konverge/redis";

/**
 * Asks whether a key that has just begun to back off may start at once, because of news that came while it ran.
 *
 * KEYS: 1 key hash, 2 fair (hash). ARGV: 1 key.
 * Answer: the priority to wake its job with, or 0.
 */
export const wakeScript: Script = defineScript(
  "wake",
  fairTagLua +
    newsLua +
    String.raw`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local h = redis.call('HMGET', KEYS[1], 'news', 'pending', 'class', 'hold', 'tag')
local class = tonumber(h[3]) or 2
if h[1] ~= '1' or (tonumber(h[2]) or 0) == 0 or h[4] == '' then return 0 end
if not wakes(KEYS[1], h[4] or '', class, now) then return 0 end
return priorityOf(tonumber(h[5]) or 0, readFair(KEYS[2], class, ARGV[1]).base, class)
`,
);
