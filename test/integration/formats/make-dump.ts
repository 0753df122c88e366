// Writes the fixture of the current format: with a Redis at REDIS_URL,
// node --conditions=@konverge/source test/integration/formats/make-dump.ts
// A fixture of a released format is never written again.
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { FORMATS } from "../../../libs/queue/src/fleet/format.ts";
import { writeState } from "./dumped-state.ts";
import { dumpRedis } from "./redis-dump.ts";

const path = join(import.meta.dirname, "dumps", `format-${FORMATS.newest}.json`);
if (existsSync(path)) throw new Error(`${path} exists; delete it if its format is not released`);
const url = process.env["REDIS_URL"] ?? "redis://127.0.0.1:6379";
const prefix = `dump-${process.pid}`;
const redis = new Redis(url);
try {
  const state = await writeState({ url, prefix });
  const keys = await dumpRedis(redis, prefix);
  const madeAtMs = Date.now();
  const text = JSON.stringify({ format: FORMATS.newest, madeAtMs, state, keys }, null, 1);
  // Stack frames contain the path of the working directory.
  writeFileSync(path, `${text.replaceAll(process.cwd(), "/opt/project")}\n`);
  console.log(`${path}: ${keys.length} keys`);
} finally {
  const names = await redis.keys(`${prefix}:*`);
  if (names.length > 0) await redis.unlink(...names);
  await redis.quit();
}
