import { ask } from "./resp.js";

/** One step of a scan over all keys, so that a large external Redis is never blocked for long. */
const STEP = `
local found = redis.call("SCAN", ARGV[1], "MATCH", ARGV[2], "COUNT", 1000)
for _, key in ipairs(found[2]) do redis.call("UNLINK", key) end
return found[1]`;

/**
 * Removes every key that begins with `<prefix>:`.
 * @param {string} url with the number of the database, if it is not 0
 * @param {string} prefix taken literally, including `*` and the like
 * @returns {Promise<void>}
 */
export async function removeKeys(url, prefix) {
  const database = new URL(url).pathname.slice(1) || "0";
  const pattern = `${prefix.replaceAll(/[\\*?[\]]/g, "\\$&")}:*`;
  let cursor = "0";
  do {
    const [, next = "0"] = await ask(url, [
      ["SELECT", database],
      ["EVAL", STEP, "0", cursor, pattern],
    ]);
    cursor = next;
  } while (cursor !== "0");
}
