/** There is no Redis to work with. Its message says why, and ends with the fix. */
export class RedisUnavailable extends Error {
  /** @type {"redis_unavailable"} */
  code = "redis_unavailable";

  /** @param {string} message @param {{ cause?: unknown }} [options] */
  constructor(message, { cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "RedisUnavailable";
  }
}
