export { clockPart } from "./clock.ts";
export { clusterRoot, DEFAULT_PREFIX, sharedRoot } from "./cluster-root.ts";
export { atEndOfTurn } from "./end-of-turn.ts";
export { explainRedisError } from "./explain-redis-error.ts";
export {
  openBlocking,
  openConsumer,
  openOnceOnly,
  openProducer,
  openSubscriber,
} from "./open-redis.ts";
export type { Consumer } from "./open-redis.ts";
export { SharedConnection } from "./shared-connection.ts";
export type { SharedUse } from "./shared-connection.ts";
export { checkRedis, inspectRedis, MAX_CLOCK_SKEW_MS } from "./redis-facts.ts";
export type { RedisFacts, RedisFinding } from "./redis-facts.ts";
export { primariesOf } from "./redis-target.ts";
export type { RedisClient, RedisTarget } from "./redis-target.ts";
export type { LuaPart } from "./compose-lua.ts";
export {
  replyFlag,
  replyList,
  replyNumber,
  replyTagged,
  replyText,
  replyTexts,
  replyWord,
} from "./reply.ts";
export type { Reply } from "./reply.ts";
export { defineScript, readLua, runScript } from "./script.ts";
export type { Script } from "./script.ts";
export type { ScriptCall, ScriptSignature } from "./script-signature.ts";
export { readClockUs, readServerInfo, runIdOf } from "./server-of.ts";
export { createTickBatch } from "./tick-batch.ts";
export type { Handed } from "./tick-batch.ts";
export { closeRedis, isLateAnswer, withRedis } from "./with-redis.ts";
