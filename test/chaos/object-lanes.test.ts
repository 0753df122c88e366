import { fileURLToPath } from "node:url";
import { createWorkQueue } from "@konverge/queue";
import { expect, test } from "vitest";
import { ConfigMap } from "@konverge/kube/kinds";
import {
  CONTROLLER,
  HOT,
  prepareWriters,
  writerKey,
  type ContentionConfig,
  type ContentionCommand,
  type ContentionWord,
} from "../bench/contention-child.ts";
import { startEmbeddedServer } from "../integration/kube/embedded-server.ts";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import { until } from "../support/until.ts";
import { Child } from "../support/child.ts";
import { PATIENT_MS } from "../support/patient.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const redisUrl = process.env["REDIS_URL"] ?? "";
const WRITERS = 40;
const WORKERS = 4;
const ROUNDS = isLongRun ? 10 : 2;
/** Longer than a silent process holds a lane. */
const STOP_MS = 3_000;
const CHILD = fileURLToPath(new URL("../bench/contention-child.ts", import.meta.url));

test(`P1, P3: no write of many writers of one object is lost, their workers killed and stopped at random (seed ${seed})`, async () => {
  const random = seededRandom(seed);
  const prefix = `chaos-lanes-${process.pid}`;
  await using cleanup = new AsyncDisposableStack();
  const { client, kubeconfig: kubeconfigPath } = cleanup.use(await startEmbeddedServer());
  await prepareWriters(client, WRITERS);
  const children = new Set<Child>();
  let serial = 0;
  let writes = 0;
  const startWorker = async (startsArmed: boolean) => {
    const config: ContentionConfig = {
      redisUrl,
      kubeconfigPath,
      prefix,
      workerId: `worker-${++serial}`,
      ratePerSecond: 5_000,
      marks: true,
      startsArmed,
    };
    const child = new Child([CHILD, JSON.stringify(config)], { ipc: true });
    children.add(child);
    void child.exited.then(() => children.delete(child));
    const ready = Promise.withResolvers<void>();
    child.process.on("message", (word: ContentionWord) => {
      if (word.kind === "wrote") writes += 1;
      if (word.kind === "ready") child.process.send({ kind: "go" } satisfies ContentionCommand);
      if (word.kind === "armed") ready.resolve();
    });
    await ready.promise;
  };
  cleanup.defer(async () => {
    await Promise.all([...children].map((child) => child.kill()));
  });
  await Promise.all(Array.from({ length: WORKERS }, () => startWorker(false)));

  const queue = createWorkQueue({
    redis: { url: redisUrl, deadlineMs: PATIENT_MS },
    controller: CONTROLLER,
    cluster: "default",
    prefix,
  });
  cleanup.defer(() => queue.close());
  for (let round = 0; round < ROUNDS; round++) {
    await client.mutate(ConfigMap, HOT, (draft) => {
      draft.data = {};
    });
    const writesBefore = writes;
    const accepted = await Promise.all(
      Array.from({ length: WRITERS }, (_, n) =>
        queue.request(writerKey(n), { kind: "cli" }, { class: "interactive" }),
      ),
    );
    await until("the writers contend", () => writes > writesBefore + random() * 10);
    const [killed, stopped] = [...children].toSorted(() => random() - 0.5);
    killed?.signal("SIGKILL");
    stopped?.signal("SIGSTOP");
    const goOn = setTimeout(() => stopped?.signal("SIGCONT"), STOP_MS);
    // Requests may be waiting for it.
    await startWorker(true);
    for (const { id } of accepted) {
      const finished = async () => (await queue.getRequest(id))?.phase === "finished";
      await until(`request ${id} is finished`, finished);
    }
    clearTimeout(goOn);
    stopped?.signal("SIGCONT");
    const { data = {} } = await client.get(ConfigMap, HOT);
    const { count, ...marks } = data;
    expect(Object.keys(marks)).toHaveLength(WRITERS);
    // Each write increments the value it read: two that overwrote each other would share a number.
    expect(new Set(Object.values(marks)).size).toBe(WRITERS);
    expect(Number(count)).toBeGreaterThanOrEqual(WRITERS);
  }
});
