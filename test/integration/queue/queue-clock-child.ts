/** A process with a wrong clock. Requests a key and ends, or works until it is killed. Prints events as lines of JSON. */
import { parseKey } from "@konverge/core";
import { createWorkQueue } from "@konverge/queue";

export interface ClockChildConfig {
  readonly url: string;
  readonly prefix: string;
  /** Offset of the clock, in ms. */
  readonly aheadMs: number;
  readonly mode: "request" | "work";
  readonly key: string;
  /** The backoff of a key's first failure in mode `work`; later attempts succeed. */
  readonly backoffMs: number;
}

const config = JSON.parse(process.argv[2] ?? "{}") as ClockChildConfig;
const { url, prefix, aheadMs, mode, backoffMs } = config;
const realNow = Date.now.bind(Date);
// BullMQ reads the time only here.
Date.now = () => realNow() + aheadMs;

const say = (line: Record<string, unknown>) => process.stdout.write(`${JSON.stringify(line)}\n`);
const key = parseKey(config.key);
const queue = createWorkQueue({
  redis: { url },
  prefix,
  controller: key.controller,
  cluster: key.cluster,
});

if (mode === "request") {
  const { id } = await queue.request(key, { kind: "http" }, { class: "interactive" });
  say({ requested: id });
  await queue.close();
} else {
  const failure = {
    baseMs: backoffMs,
    factor: 1,
    capMs: backoffMs,
    steps: Infinity,
    jitter: { kind: "none" },
  } as const;
  queue.work({
    workerId: "child",
    backoffs: { conflict: failure, failure, rejected: failure },
    handle: async ({ failures }) => {
      say({ started: failures });
      const error = new Error("the first attempt");
      return { outcome: failures === 0 ? { kind: "retry", error } : { kind: "done" } };
    },
    onError: (error) => process.stderr.write(`${error.message}\n`),
  });
}
