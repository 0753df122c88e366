import { defineScript, type Script } from "@konverge/redis";

/**
 * Claims a cluster's name and its number of shards where they are free, and announces controllers when both are as the
 * caller says: at once, so that a Redis that loses its data in between never has controllers without their binding.
 *
 * KEYS: 1 uid (text), 2 shards (text), 3 controllers (hash). ARGV: 1 uid, 2 shards, then fields and values of the hash.
 * Answer: the uid that holds the name, and the number of shards; that is absent when the uid is another's.
 */
export const claimBindingScript: Script = defineScript(
  "claim-binding",
  String.raw`
local function claim(key, value)
  redis.call('SETNX', key, value)
  return redis.call('GET', key)
end
local uid = claim(KEYS[1], ARGV[1])
if uid ~= ARGV[1] then return { uid } end
local shards = claim(KEYS[2], ARGV[2])
if shards == ARGV[2] then
  for at = 3, #ARGV, 2 do redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 1]) end
end
return { uid, shards }
`,
);
