import { attemptRecordSchema, type AttemptRecord } from "@konverge/records";
import {
  defined,
  compareResourceVersions,
  handlerSucceeded,
  parseApiVersion,
  type ApiObject,
  type ObjectKey,
} from "@konverge/core";
import type { Controller } from "@konverge/engine";
import { createWorkQueue, type StoredAttempt, type WorkQueue } from "@konverge/queue";

/** The record of one run of a handler. */
export type Attempt = AttemptRecord;

export interface AttemptWatch {
  /** Oldest first. */
  of(object: ApiObject): Promise<readonly Attempt[]>;
  /** True if each controller of the kind has succeeded with this or a newer version, and no request is pending. */
  settled(object: ApiObject): Promise<boolean>;
  /** Describes the last attempt for an error message. */
  describe(object: ApiObject): Promise<string>;
  close(): Promise<void>;
}

export interface AttemptWatchOptions {
  readonly controllers: readonly Controller[];
  readonly redisUrl: string;
  readonly prefix: string;
}

const CLUSTER = "default";

/** Reads the attempts at the objects of a test from the queue. */
export function watchAttempts({
  controllers,
  redisUrl,
  prefix,
}: AttemptWatchOptions): AttemptWatch {
  const queues = new Map<Controller, WorkQueue>(
    controllers.map((controller) => [
      controller,
      createWorkQueue({
        redis: { url: redisUrl },
        controller: controller.name,
        cluster: CLUSTER,
        prefix,
      }),
    ]),
  );
  const keysOf = ({ apiVersion, kind, metadata }: ApiObject) =>
    [...queues].flatMap(([{ name: controller, for: type }, queue]) => {
      if (type.kind !== kind || type.group !== parseApiVersion(apiVersion).group) return [];
      const key: ObjectKey = {
        controller,
        cluster: CLUSTER,
        resource: type.resource,
        group: type.group,
        name: metadata.name,
        ...defined({ namespace: metadata.namespace }),
      };
      return [{ queue, key }];
    });
  const read = async (queue: WorkQueue, key: ObjectKey) =>
    (await queue.listAttempts(key)).flatMap(parseRecord);

  return {
    async of(object) {
      const found = await Promise.all(keysOf(object).map(({ queue, key }) => read(queue, key)));
      return found.flat().toSorted((a, b) => (a.startedAt < b.startedAt ? -1 : 1));
    },
    async settled(object) {
      const keys = keysOf(object);
      if (keys.length === 0) return false;
      const settled = keys.map(async ({ queue, key }) => {
        const state = await queue.getKey(key);
        if (state === undefined || state.phase === "running" || state.phase === "waiting")
          return false;
        if (state.finished < state.requested) return false;
        const good = (await read(queue, key)).filter(({ outcome }) => handlerSucceeded(outcome));
        return good.some(({ versionBefore }) => isAsNew(versionBefore, object));
      });
      return (await Promise.all(settled)).every(Boolean);
    },
    async describe(object) {
      const keys = keysOf(object);
      if (keys.length === 0) return `no controller of this test reconciles ${object.kind}`;
      const last = (await this.of(object)).at(-1);
      if (last === undefined) return "no attempt has ended yet";
      const { controller, outcome, attempt, error } = last;
      const why = error === undefined ? "" : `, ${error.code}: ${error.message}`;
      return `attempt ${attempt} of ${controller} ended with ${outcome}${why}`;
    },
    async close() {
      await Promise.all([...queues.values()].map((queue) => queue.close()));
    },
  };
}

function parseRecord({ record }: StoredAttempt): Attempt[] {
  const parsed = attemptRecordSchema.safeParse(JSON.parse(record));
  return parsed.success ? [parsed.data] : [];
}

function isAsNew(seen: string | undefined, { metadata }: ApiObject): boolean {
  const { resourceVersion } = metadata;
  if (resourceVersion === undefined) return true;
  return seen !== undefined && (compareResourceVersions(seen, resourceVersion) ?? 0) >= 0;
}
