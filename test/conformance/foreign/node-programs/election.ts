import { isDeepStrictEqual } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiException, V1MicroTime, type V1Lease } from "@kubernetes/client-node";
import { has, type World } from "./world.ts";

const DURATION_S = 2;

interface Candidate {
  readonly identity: string;
  /** Without a release, as after a crash. */
  readonly crash: AbortController;
  readonly release: AbortController;
  readonly ended: Promise<void>;
}

/**
 * The leader election of client-go, written with the Leases of client-node, which has none: of three candidates the
 * first crashes, the second releases its Lease, and the last one leads.
 */
export async function election(world: World): Promise<void> {
  const lines: string[] = [];
  const start = (identity: string): Candidate => {
    const crash = new AbortController();
    const release = new AbortController();
    const ended = campaign(world, {
      identity,
      crash: crash.signal,
      release: release.signal,
      lines,
    });
    return { identity, crash, release, ended };
  };
  const first = start("first");
  await has(lines, "first leads");
  const second = start("second");
  first.crash.abort();
  await first.ended;
  await has(lines, "second leads");
  const third = start("third");
  second.release.abort();
  await second.ended;
  await has(lines, "third leads");
  third.release.abort();
  await third.ended;
  for (const line of lines) world.say(line);
  const { spec } = await readLease(world);
  world.say(
    `released: ${JSON.stringify(spec?.holderIdentity)}, transitions ${spec?.leaseTransitions}`,
  );
  await race(world);
}

interface Campaign {
  readonly identity: string;
  readonly crash: AbortSignal;
  readonly release: AbortSignal;
  readonly lines: string[];
}

async function campaign(
  world: World,
  { identity, crash, release, lines }: Campaign,
): Promise<void> {
  let seen: V1Lease | undefined;
  let seenMs = 0;
  let isLeader = false;
  while (!crash.aborted && !release.aborted) {
    const lease = await readLease(world).catch(nothingIfMissing);
    if (lease === undefined) {
      await create(world, identity);
    } else {
      if (!isDeepStrictEqual(lease.spec, seen?.spec)) [seen, seenMs] = [lease, performance.now()];
      const holder = lease.spec?.holderIdentity ?? "";
      const isExpired = performance.now() - seenMs > DURATION_S * 1_000;
      if (holder === identity && !isLeader) lines.push(`${identity} leads`);
      isLeader = holder === identity;
      if (isLeader || holder === "" || isExpired) await claim(world, lease, identity);
    }
    await sleep(100);
  }
  if (!isLeader || crash.aborted) return;
  await until409Ends(() => claimWith(world, ""));
  lines.push(`${identity} released`);
}

const readLease = ({ leases, namespace }: World) =>
  leases.readNamespacedLease({ namespace, name: "leader" });

function nothingIfMissing(error: unknown): undefined {
  if (error instanceof ApiException && error.code === 404) return undefined;
  throw error;
}

async function create({ leases, namespace }: World, identity: string): Promise<void> {
  const now = new V1MicroTime();
  const spec = {
    holderIdentity: identity,
    leaseDurationSeconds: DURATION_S,
    acquireTime: now,
    renewTime: now,
    leaseTransitions: 0,
  };
  await until409Ends(() =>
    leases.createNamespacedLease({ namespace, body: { metadata: { name: "leader" }, spec } }),
  );
}

/** Claims or renews a Lease that was read. Another candidate's write in between is a conflict, and changes nothing. */
async function claim(world: World, lease: V1Lease, identity: string): Promise<void> {
  const { leases, namespace } = world;
  const now = new V1MicroTime();
  const isNew = lease.spec?.holderIdentity !== identity;
  const spec = {
    ...lease.spec,
    holderIdentity: identity,
    renewTime: now,
    ...(isNew
      ? { acquireTime: now, leaseTransitions: (lease.spec?.leaseTransitions ?? 0) + 1 }
      : {}),
  };
  const body = { ...lease, spec };
  await leases.replaceNamespacedLease({ namespace, name: "leader", body }).catch(nothingIfConflict);
}

async function claimWith(world: World, identity: string): Promise<void> {
  const lease = await readLease(world);
  const body = { ...lease, spec: { ...lease.spec, holderIdentity: identity } };
  await world.leases.replaceNamespacedLease({ namespace: world.namespace, name: "leader", body });
}

async function until409Ends(write: () => Promise<unknown>): Promise<void> {
  await write().catch(nothingIfConflict);
}

function nothingIfConflict(error: unknown): undefined {
  if (error instanceof ApiException && error.code === 409) return undefined;
  throw error;
}

/** Of ten claims that start from one version, one is written. */
async function race(world: World): Promise<void> {
  const { leases, namespace, say } = world;
  const lease = await readLease(world);
  const claims = Array.from({ length: 10 }, (_, index) =>
    leases
      .replaceNamespacedLease({
        namespace,
        name: "leader",
        body: { ...lease, spec: { ...lease.spec, holderIdentity: `racer-${index}` } },
      })
      .then(() => 200)
      .catch((error: unknown) =>
        error instanceof ApiException ? error.code : Promise.reject(error),
      ),
  );
  const codes = await Promise.all(claims);
  say(`race: ${codes.toSorted((a, b) => a - b).join(" ")}`);
  const after = await readLease(world);
  const isMicro = after.spec?.renewTime instanceof V1MicroTime;
  say(`times keep their type: ${isMicro}, holder ${after.spec?.holderIdentity?.slice(0, 6)}`);
}
