import { SentinelConnector, type SentinelConnectionOptions } from "ioredis";

/**
 * ioredis's connector to what Sentinels name as the primary, without its race (6.0.0): it hears of a failover from the
 * subscriptions of the last connection until it has made a new one. When that word comes while it is asking a Sentinel already,
 * it takes itself for closed by its owner, and never connects again. Whoever asks anew needs no word from before.
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
