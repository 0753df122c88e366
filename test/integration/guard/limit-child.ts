/** A worker in a separate process: takes permits and holds them for a while. Tests kill or stop it. */
import { openLimits } from "@konverge/guard";
import type { NamedLimits } from "@konverge/core";

export interface LimitChildConfig {
  readonly redisUrl: string;
  readonly prefix: string;
  readonly workerId: string;
  readonly limits: NamedLimits;
  readonly lanes: number;
  readonly holdMs: number;
}

/** Times in ms of the machine's monotonic clock, shared by all processes. */
export interface LimitChildWord {
  readonly kind: "held" | "ended";
  readonly permit: string;
  readonly atMs: number;
  /** Of `held`: begin of the request. */
  readonly askedMs?: number;
}

const config = JSON.parse(process.argv[2] ?? "{}") as LimitChildConfig;
const monotonicMs = () => Number(process.hrtime.bigint()) / 1e6;
const say = (word: LimitChildWord) => process.send?.(word);
process.on("disconnect", () => process.exit());

const limits = openLimits({
  ...config,
  redis: { url: config.redisUrl },
  wake: async () => true,
  onError: () => undefined,
});
await limits.configure();
const never = new AbortController().signal;

async function lane(index: number): Promise<void> {
  for (let round = 0; ; round += 1) {
    const permit = `${config.workerId}/${index}/${round}`;
    const request = { name: "api", waiter: permit, inPlaceMs: Infinity, signal: never };
    const askedMs = monotonicMs();
    const taken = await limits.take(request);
    if (taken.kind === "waiting") throw new Error("it waits in place");
    const { permit: held } = taken;
    say({ kind: "held", permit, atMs: monotonicMs(), askedMs });
    await new Promise<void>((resolve) => {
      setTimeout(resolve, config.holdMs);
      held.signal.addEventListener("abort", () => resolve(), { once: true });
    });
    say({ kind: "ended", permit, atMs: monotonicMs() });
    held.release();
  }
}

await Promise.all(Array.from({ length: config.lanes }, (_, index) => lane(index)));
