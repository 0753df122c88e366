import type { Client } from "@konverge/client";
import type { NewMutation } from "@konverge/contracts";
import type { LocalProcess } from "@konverge/local-stack";
import { KonvergeError } from "@konverge/core";
import type { DemoProgress } from "../stage/progress.ts";
import { APPS, imageOf, NAMESPACE, USAGE_PATH } from "./shop.ts";

export const RELEASES = 10;
/** Requests that the billing system counts per app. */
export const REQUESTS = 200;
/** Increments of a message of the billing system. */
const MESSAGE = 20;
/** Each message of this number is delivered twice. */
const REPEATED = 3;
/** The release before which a worker is killed. */
const KILLED_AT = 3;
const WAIT_MS = 90_000;

export interface MutationsPlayed {
  /** Number of mutations by their outcome. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Mutations that were submitted again. */
  readonly repeated: number;
}

interface Playing {
  readonly client: Client;
  readonly worker: LocalProcess;
  readonly progress: Pick<DemoProgress, "print" | "begin" | "update">;
  readonly signal: AbortSignal;
}

/** Lets the systems change the same objects while a worker is killed, and returns the outcomes of all mutations. */
export async function playMutations(playing: Playing): Promise<MutationsPlayed> {
  const { client, worker, progress, signal } = playing;
  const ids = new Set<string>();
  let repeated = 0;
  progress.begin("a CI pipeline, a billing system and an operator change the same Deployments");
  const submit = async (mutations: readonly NewMutation[]) => {
    signal.throwIfAborted();
    const { items } = await client.mutations.submitAll(mutations, { signal });
    for (const item of items) {
      if (!("id" in item)) throw new KonvergeError("demo_failed", item.error.detail);
      ids.add(item.id);
    }
  };
  const pipeline = async () => {
    for (let release = 1; release <= RELEASES; release++) {
      if (release === KILLED_AT) {
        process.kill(worker.pid, "SIGKILL");
        progress.print(`worker 1 (pid ${worker.pid}) was killed with -9`);
      }
      const rollouts = APPS.map((app) => rolloutOf(app, release));
      await submit(rollouts);
      await Promise.all(
        rollouts.map(({ id }) =>
          client.mutations.wait(`default/${id ?? ""}`, { timeoutMs: WAIT_MS, signal }),
        ),
      );
      progress.update(`release ${release} of ${RELEASES} is set`);
    }
  };
  const billing = async (app: string) => {
    for (let from = 0; from < REQUESTS; from += MESSAGE) {
      const message = Array.from({ length: MESSAGE }, (_, at) => usageOf(app, from + at));
      await submit(message);
      if ((from / MESSAGE) % REPEATED !== 0) continue;
      repeated += message.length;
      await submit(message);
    }
  };
  await Promise.all([pipeline(), ...APPS.map(billing)]);
  progress.begin("waiting for the outcomes");
  const outcomes: Record<string, number> = {};
  for (const id of ids) {
    const { state } = await client.mutations.wait(id, { timeoutMs: WAIT_MS, signal });
    outcomes[state] = (outcomes[state] ?? 0) + 1;
  }
  return { outcomes, repeated };
}

const rolloutId = (app: string, release: number) => `release-${app}-${release}`;

/** The pipeline changes only the container that it has built. */
function rolloutOf(app: string, release: number): NewMutation {
  const container = "/spec/template/spec/containers/0";
  return {
    kind: "Deployment",
    namespace: NAMESPACE,
    name: app,
    id: rolloutId(app, release),
    if: { fields: [{ path: `${container}/name`, value: app }] },
    changes: [{ kind: "set", path: `${container}/image`, value: imageOf(app, release) }],
  };
}

function usageOf(app: string, request: number): NewMutation {
  return {
    kind: "Deployment",
    namespace: NAMESPACE,
    name: app,
    id: `usage-${app}-${request}`,
    class: "event",
    changes: [{ kind: "increment", path: USAGE_PATH, by: 1 }],
  };
}
