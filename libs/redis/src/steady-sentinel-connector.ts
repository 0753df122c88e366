import { SentinelConnector, type SentinelConnectionOptions } from "ioredis";

/**
 * ioredis's Sentinel connector without its race (6.0.0). It keeps the subscriptions of the last connection until it has a new
 * one. If a failover message arrives while it queries a Sentinel, it behaves as if closed by its owner and never reconnects.
 * A new query makes earlier messages obsolete.
 */
export class SteadySentinelConnector extends SentinelConnector {
  constructor(options: unknown) {
    super(options as SentinelConnectionOptions);
  }

  override connect(
    ...given: Parameters<SentinelConnector["connect"]>
  ): ReturnType<SentinelConnector["connect"]> {
    const { failoverDetector } = this as unknown as {
      readonly failoverDetector: { cleanup(): void } | null;
    };
    failoverDetector?.cleanup();
    return super.connect(...given);
  }
}
