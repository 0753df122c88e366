import { SentinelConnector, type SentinelConnectionOptions, type Redis } from "ioredis";

/** Members that ioredis does not declare. */
interface Hidden {
  readonly failoverDetector: { cleanup(): void } | null;
  connectToSentinel(...given: readonly unknown[]): Redis;
}

/**
 * ioredis's Sentinel connector without two defects (6.0.0):
 *
 * - It keeps the subscriptions of the last connection until it has a new one. If a failover message arrives while it queries a
 *   Sentinel, it behaves as if closed by its owner and never reconnects. A new query makes earlier messages obsolete.
 * - The subscriptions have no listener for errors, so that ioredis prints each failed connection to a Sentinel to stderr. The
 *   queries report it.
 */
export class SteadySentinelConnector extends SentinelConnector {
  constructor(options: unknown) {
    super(options as SentinelConnectionOptions);
    const hidden = this as unknown as Hidden;
    const connect = hidden.connectToSentinel.bind(this);
    hidden.connectToSentinel = (...given) => {
      const redis = connect(...given);
      redis.on("error", () => undefined);
      return redis;
    };
  }

  override connect(
    ...given: Parameters<SentinelConnector["connect"]>
  ): ReturnType<SentinelConnector["connect"]> {
    (this as unknown as Hidden).failoverDetector?.cleanup();
    return super.connect(...given);
  }
}
