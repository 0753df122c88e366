export { explainTrouble } from "./explain-trouble.ts";
export { openConsumer, openOnceOnly, openProducer, openSubscriber } from "./open-redis.ts";
export type { Consumer } from "./open-redis.ts";
export { primariesOf } from "./redis-target.ts";
export type { RedisClient, RedisTarget } from "./redis-target.ts";
export { defineScript, runScript } from "./script.ts";
export type { Script, ScriptArgument } from "./script.ts";
export { readClockUs, readServerInfo, runIdOf } from "./server-of.ts";
export { closeRedis, withRedis } from "./with-redis.ts";
