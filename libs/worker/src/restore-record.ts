import { leaseName } from "@konverge/engine";
import { ignoreNotFound, isConflict, isForbidden, type KubeClient } from "@konverge/kube";
import { Lease } from "@konverge/kube/kinds";
import type { RecordedProgress } from "@konverge/queue";
import type { Log } from "@konverge/engine";
import { RESTORE_LEASE } from "./config/controller-access.ts";

const ID = "konverge.dev/redis-id";
const PROGRESS = "konverge.dev/redis-progress";

/** Time after which the record of another Redis is replaced, in ms: three times the time between two records. */
const STALE_MS = 90_000;

export interface RestoreRecordOptions {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly installation: string;
  readonly log: Log;
}

/**
 * The progress of an installation's data, in a Lease of the cluster. It detects a restore of Redis while no worker runs, and a second
 * Redis of the same installation.
 */
export interface RestoreRecord {
  /** Undefined if there is none, or if the account may not read it. */
  read(): Promise<RecordedProgress | undefined>;
  /** Replaces the record, unless another Redis keeps its own. */
  write(progress: RecordedProgress): Promise<void>;
}

export function createRestoreRecord(options: RestoreRecordOptions): RestoreRecord {
  const { namespace, installation, log } = options;
  const client = options.client.scoped({ priority: "resync" });
  const name = leaseName(installation, RESTORE_LEASE);
  let isDenied = false;
  let other: { readonly id: string; readonly renewed: string } | undefined;

  const find = () => client.get(Lease, { namespace, name }).catch(ignoreNotFound);
  const unlessForbidden = async <T>(call: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await call();
    } catch (error) {
      if (isConflict(error)) return undefined;
      if (!isForbidden(error)) throw error;
      if (!isDenied) log.warn({ err: error, lease: name }, "progress of Redis not recorded");
      isDenied = true;
      return undefined;
    }
  };

  /** Returns true if the record belongs to another Redis that is in use. */
  const isForeign = (id: string, found: RecordedProgress & { readonly renewed: string }) => {
    if (found.id === id) return false;
    const isRenewed = other?.id === found.id && other.renewed !== found.renewed;
    other = { id: found.id, renewed: found.renewed };
    if (isRenewed) log.warn({ lease: name }, "another Redis is used by this installation");
    return isRenewed || isRecent(found);
  };

  return {
    read: () =>
      unlessForbidden(async () => {
        const found = recordOf(await find());
        if (found === undefined) return undefined;
        const { id, progressMs } = found;
        return { id, progressMs, isInUse: isRecent(found) };
      }),
    async write({ id, progressMs }) {
      await unlessForbidden(async () => {
        const lease = await find();
        const found = recordOf(lease);
        if (found !== undefined && isForeign(id, found)) return;
        const annotations = { [ID]: id, [PROGRESS]: new Date(progressMs).toISOString() };
        const spec = { holderIdentity: id, renewTime: microTime() };
        if (lease === undefined) {
          await client.create(Lease, {
            apiVersion: "coordination.k8s.io/v1",
            kind: "Lease",
            metadata: { namespace, name, annotations },
            spec,
          });
          return;
        }
        const metadata = {
          ...lease.metadata,
          annotations: { ...lease.metadata.annotations, ...annotations },
        };
        await client.replace(Lease, { ...lease, metadata, spec: { ...lease.spec, ...spec } });
      });
    },
  };
}

function isRecent({ renewed }: { readonly renewed: string }): boolean {
  return Date.parse(renewed) > Date.now() - STALE_MS;
}

function recordOf(
  lease:
    | {
        readonly metadata: { readonly annotations?: Readonly<Record<string, string>> };
        readonly spec?: unknown;
      }
    | undefined,
): (RecordedProgress & { readonly renewed: string }) | undefined {
  const id = lease?.metadata.annotations?.[ID];
  const progressMs = Date.parse(lease?.metadata.annotations?.[PROGRESS] ?? "");
  if (id === undefined || Number.isNaN(progressMs)) return undefined;
  const { renewTime } = (lease?.spec ?? {}) as { readonly renewTime?: string | Date };
  return { id, progressMs, renewed: String(renewTime ?? "") };
}

/** The format of a MicroTime, which requires six fractional digits. */
function microTime(): string {
  return new Date().toISOString().replace("Z", "000Z");
}
