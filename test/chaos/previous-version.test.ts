import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startRedis } from "@konverge/infra-redis";
import { Namespace, ConfigMap } from "@konverge/kube/kinds";
import { expect, test } from "vitest";
import { seededRandom } from "../../apps/demo/src/load/seeded-random.ts";
import { Installation, type Running } from "../game-day/installation.ts";
import { Traffic } from "../game-day/traffic.ts";
import { startEmbeddedServer } from "../integration/kube/embedded-server.ts";
import { installWidgets } from "../integration/kube/kube-servers.ts";
import { findPrevious, installPrevious, type Version } from "../support/previous-version.ts";
import { RepeatedStarts } from "./repeated-starts.ts";
import { isLongRun, seed } from "../support/test-run.ts";

const CONFIG = "test/chaos/versions.config.ts";
const ROUNDS = isLongRun ? 30 : 2;
const COUNTERS = 4;
const name = "versions";

test(`no request and no update is lost while processes of the previous version and of this one are killed (KONVERGE_TEST_SEED=${seed})`, async ({
  skip,
}) => {
  const previous = await (isLongRun ? installPrevious(CONFIG, console.log) : findPrevious(CONFIG));
  if ("missing" in previous) {
    skip(previous.missing);
    return;
  }
  await using cleanup = new AsyncDisposableStack();
  const redis = cleanup.use(await startRedis());
  const { client, kubeconfig } = cleanup.use(await startEmbeddedServer());
  const widgets = await installWidgets(client, "game-day.konverge.dev");
  await client.create(Namespace, { metadata: { name } });
  for (let at = 0; at < COUNTERS; at += 1) {
    await client.create(ConfigMap, { metadata: { namespace: name, name: `counts-${at}` } });
  }
  const folder = await mkdtemp(join(tmpdir(), "konverge-versions-"));
  cleanup.defer(() => rm(folder, { recursive: true }));
  const installation = cleanup.use(
    new Installation({ name, namespace: name, redisUrl: redis.url, kubeconfig, folder }),
  );
  const traffic = cleanup.use(new Traffic(installation, { client, widgets }));
  await traffic.createObjects();
  const processes = new Processes(installation, previous);
  await processes.startAll();

  const starts = new RepeatedStarts(installation);
  cleanup.defer(() => starts.stop());
  traffic.start();
  starts.start();
  const random = seededRandom(seed);
  for (let round = 0; round < ROUNDS; round += 1) {
    await processes.kill(random);
    await traffic.untilServed();
  }
  await starts.stop();
  await traffic.stop();
  for (const id of traffic.runs.keys()) await starts.approve(id);
  await traffic.settle();
  await starts.settle();

  const { data } = await readCounters();
  console.log(
    `${traffic.accepted} requests and ${starts.names.length} repeated starts were accepted`,
  );
  expect(starts.differences).toEqual([]);
  expect(traffic.countSteps().missing, "steps that did not run").toEqual([]);
  const journal = new Set(installation.journal());
  const runs = [...traffic.runs.values(), ...starts.names];
  const effects = runs.flatMap((run) => [`charge ${run}`, `part ${run}`, `send ${run}`]);
  expect(effects.filter((effect) => !journal.has(effect))).toEqual([]);
  expect(
    runs.filter((run) => data[run] !== "I"),
    "runs that did not increment their counter once",
  ).toEqual([]);
  expect(
    Object.entries(data).filter(([, count]) => count !== "I"),
    "also of runs that were started without an answer",
  ).toEqual([]);
  const workedAs = ["previous", "current"].filter((one) => journal.has(`reconcile ${one}`));
  expect(workedAs, "both versions take part").toEqual(["previous", "current"]);

  async function readCounters() {
    const { items } = await client.list(ConfigMap, { namespace: name });
    return {
      data: Object.assign({}, ...items.map((item) => item.data)) as Record<string, string>,
    };
  }
});

type VersionName = "previous" | "current";

/** Two workers and an API process of each version. */
class Processes {
  readonly #installation: Installation;
  readonly #previous: Version;
  readonly #all: {
    readonly kind: "worker" | "api";
    readonly version: VersionName;
    running: Running;
  }[] = [];

  constructor(installation: Installation, previous: Version) {
    this.#installation = installation;
    this.#previous = previous;
  }

  async startAll(): Promise<void> {
    for (const version of ["previous", "current"] as const) {
      for (const kind of ["worker", "worker", "api"] as const) {
        this.#all.push({ kind, version, running: await this.#start(kind, version) });
      }
    }
  }

  async #start(kind: "worker" | "api", version: VersionName): Promise<Running> {
    const options = {
      ...(version === "previous" ? this.#previous : { config: CONFIG }),
      env: { VERSIONS_NAME: version },
    };
    return kind === "worker"
      ? await this.#installation.startWorker(options)
      : await this.#installation.startApi(options);
  }

  /** Kills at least one process, and at times all of them, and starts each again. */
  async kill(random: () => number): Promise<void> {
    const share = random();
    const first = Math.floor(random() * this.#all.length);
    const victims = this.#all.filter((_, at) => at === first || random() < share);
    console.log(`kills ${victims.map(({ kind, version }) => `${version} ${kind}`).join(", ")}`);
    await Promise.all(
      victims.map(async ({ kind, running }) => {
        if (kind === "api") this.#installation.service.remove(running.url);
        await running.kill();
      }),
    );
    for (const victim of victims) victim.running = await this.#start(victim.kind, victim.version);
  }
}
