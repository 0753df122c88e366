import { defineScript, type Script } from "@konverge/redis";
import { askLua } from "./ask.ts";

/**
 * How long the key that starts next has been waiting: for its oldest request, but not while it backed off. Since whoever has
 * waited for the ageing bound comes first, no key waits much longer than this.
 *
 * KEYS: 1 BullMQ's waiting jobs. ARGV: 1 root of the key hashes, 2 root of BullMQ's keys. Answer: ms; 0 when nothing waits.
 *
 * Names of key hashes and jobs are built here; they share the hash tag of KEYS.
 */
export const headAgeScript: Script = defineScript(
  "headAge",
  askLua +
    String.raw`
local head = redis.call('ZRANGE', KEYS[1], 0, 0)[1]
local member = head and redis.call('HGET', ARGV[2] .. head, 'deid')
if not member then return 0 end
local h = redis.call('HMGET', ARGV[1] .. member, 'pending', 'ask', 'hold', 'nextAt', 'woken')
local since = (tonumber(h[1]) or 0) > 0 and tonumber(readAsk(h[2]).since) or 0
if h[3] and h[3] ~= '' and h[5] ~= '1' then since = math.max(since, tonumber(h[4]) or 0) end
if since == 0 then return 0 end
local time = redis.call('TIME')
return math.max(0, time[1] * 1000 + math.floor(time[2] / 1000) - since)
`,
);
