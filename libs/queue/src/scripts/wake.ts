import { askLua } from "./ask.ts";
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
  askLua +
    fairTagLua +
    newsLua +
    String.raw`
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local h = redis.call('HMGET', KEYS[1], 'pending', 'ask', 'hold')
if (tonumber(h[1]) or 0) == 0 or not h[3] or h[3] == '' then return 0 end
local ask = readAsk(h[2])
if ask.news ~= '1' or not wakes(KEYS[1], h[3], ask.class, now) then return 0 end
return priorityOf(ask.tag, readFair(KEYS[2], ask.class, ARGV[1]).base, ask.class)
`,
);
