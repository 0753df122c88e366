import { defineScript, type Script } from "@konverge/redis";

const CLOCK = "redis.call('TIME')";

/** The same text with the clock as its last two arguments, seconds and microseconds, to be run in a real Redis. */
export function withInjectedClock({ name, lua }: Script): Script {
  if (!lua.includes(CLOCK)) throw new RangeError(`script ${name} reads no clock`);
  return defineScript(
    `${name}-with-clock`,
    lua.replaceAll(CLOCK, "{ ARGV[#ARGV - 1], ARGV[#ARGV] }"),
  );
}
