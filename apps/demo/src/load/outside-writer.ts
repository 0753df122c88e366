import { sleepMs } from "@konverge/core";
import { isConflict, type KubeClient } from "@konverge/kube";
import { seededRandom } from "./seeded-random.ts";
import { NodePool, type PoolObject } from "./kinds.ts";

export const COUNTER = "outside.example.com/edits";
const LABEL = "outside.example.com/last";

export interface WriterOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly pools: readonly string[];
  readonly seed: number;
  /** Mean pause between two edits of one pool, in ms. */
  readonly pauseMs: number;
  /** Time between its read and its write. */
  readonly thinkMs: number;
  /** Overwrites changes made since its read: the mistake that the lost-update check must find. */
  readonly blind: boolean;
  readonly signal: AbortSignal;
}

/** Two concurrent edits per pool, as two replicas of a careless program would make; they conflict with each other too. */
const HANDS = ["a", "b"] as const;

/** The writer's own record of its writes, by pool: the other half of the lost-update check. */
export interface WriterReport {
  readonly edits: Readonly<Record<string, number>>;
  /** Each label belongs to one of the two writers, so that its last value is certain. */
  readonly labels: Readonly<Record<string, Readonly<Record<string, string>>>>;
  readonly conflicts: number;
}

/**
 * A foreign program: edits the same pools by plain GET and PUT, without queue or lane, and retries a conflict
 * immediately. Runs until aborted.
 */
export async function runOutsideWriter(options: WriterOptions): Promise<WriterReport> {
  const edits: Record<string, number> = {};
  const labels: Record<string, Record<string, string>> = {};
  let conflicts = 0;
  await Promise.all(
    options.pools
      .flatMap((pool) => HANDS.map((hand) => ({ pool, hand })))
      .map(async ({ pool, hand }, index) => {
        const random = seededRandom(options.seed + index);
        let count = 0;
        edits[pool] ??= 0;
        while (await pause(options.pauseMs * 2 * random(), options.signal)) {
          const label = { name: `${LABEL}-${hand}`, value: `edit-${count + 1}` };
          for (;;) {
            if (await tryEdit(options, pool, label)) break;
            conflicts += 1;
          }
          count += 1;
          edits[pool] = (edits[pool] ?? 0) + 1;
          labels[pool] = { ...labels[pool], [label.name]: label.value };
        }
      }),
  );
  return { edits, labels, conflicts };
}

async function tryEdit(
  options: WriterOptions,
  pool: string,
  label: { readonly name: string; readonly value: string },
): Promise<boolean> {
  const { client, namespace, thinkMs, blind } = options;
  const target = { namespace, name: pool };
  const read = await client.get(NodePool, target);
  await sleepMs(thinkMs);
  const count = Number(read.metadata.annotations?.[COUNTER] ?? 0) + 1;
  const edited: PoolObject = {
    ...read,
    metadata: {
      ...read.metadata,
      labels: { ...read.metadata.labels, [label.name]: label.value },
      annotations: { ...read.metadata.annotations, [COUNTER]: String(count) },
    },
  };
  if (blind) {
    const { resourceVersion } = (await client.get(NodePool, target)).metadata;
    if (resourceVersion !== undefined) edited.metadata.resourceVersion = resourceVersion;
  }
  try {
    await client.replace(NodePool, edited);
    return true;
  } catch (error) {
    if (isConflict(error)) return false;
    throw error;
  }
}

async function pause(ms: number, signal: AbortSignal): Promise<boolean> {
  await sleepMs(ms, signal).catch((error: unknown) => {
    if (!signal.aborted) throw error;
  });
  return !signal.aborted;
}
