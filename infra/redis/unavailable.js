/** No usable Redis. The message names the reason and ends with the fix. */
export class RedisUnavailable extends Error {
  /** @type {"redis_unavailable"} */
  code = "redis_unavailable";

  /** @param {string} message @param {{ cause?: unknown }} [options] */
  constructor(message, { cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "RedisUnavailable";
  }
}
