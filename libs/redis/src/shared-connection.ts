import type { RedisClient } from "./redis-target.ts";

/** The use of a shared connection. */
export interface SharedUse<Client extends RedisClient = RedisClient> {
  readonly redis: Client;
  /** Closes the connection if this was its last user. */
  release(): Promise<void>;
}

export interface SharedConnectionOptions<Client extends RedisClient> {
  readonly open: () => Client;
  readonly close: (redis: Client) => void | Promise<void>;
}

/** A connection that several users share, open while it has a user. */
export class SharedConnection<Client extends RedisClient = RedisClient> {
  readonly #options: SharedConnectionOptions<Client>;
  #redis: Client | undefined;
  #users = 0;

  constructor(options: SharedConnectionOptions<Client>) {
    this.#options = options;
  }

  /** `onError` receives the errors of the connection until the release. */
  use(onError: (error: Error) => void): SharedUse<Client> {
    const redis = (this.#redis ??= this.#open());
    this.#users += 1;
    redis.on("error", onError);
    let released: Promise<void> | undefined;
    return { redis, release: () => (released ??= this.#release(redis, onError)) };
  }

  #open(): Client {
    const redis = this.#options.open();
    // Each user listens to it. BullMQ adds to the limit, and would make 0 a low one.
    redis.setMaxListeners(Infinity);
    return redis;
  }

  async #release(redis: Client, onError: (error: Error) => void): Promise<void> {
    this.#users -= 1;
    if (this.#users === 0) {
      this.#redis = undefined;
      await this.#options.close(redis);
    }
    redis.off("error", onError);
  }
}
