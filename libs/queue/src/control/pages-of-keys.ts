import { parseKey, type ObjectKey } from "@konverge/core";
import { withRedis, type RedisClient } from "@konverge/redis";
import type { QueueNames } from "../keys/queue-names.ts";

/** Keys per round trip. */
const PAGE = 1_000;

/** Reads the index of keys in pages. Keys that are added meanwhile may be missing. */
export async function* pagesOfKeys(
  redis: RedisClient,
  { index }: Pick<QueueNames, "index">,
): AsyncGenerator<readonly ObjectKey[]> {
  let from = "-";
  for (;;) {
    const ids = await withRedis(redis, () => redis.zrangebylex(index, from, "+", "LIMIT", 0, PAGE));
    yield ids.map((id) => parseKey(id));
    const last = ids.at(-1);
    if (last === undefined || ids.length < PAGE) return;
    from = `(${last}`;
  }
}
