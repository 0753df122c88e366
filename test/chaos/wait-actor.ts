import { defined } from "@konverge/core";
import { createReflector, isNotFound, isReplaced, type KubeClient } from "@konverge/kube";
import { statusOf, WIDGETS, type WaitedWidget } from "./verb-waits.ts";

/** An external actor that gives objects the state that runs wait for, each after the delay in its spec. */
export interface WaitActor {
  /** The time (epoch ms) before which the object with the uid did not meet its wait. Absent: it never met it. */
  readonly actedAtMs: ReadonlyMap<string, number>;
  /** Makes all remaining changes at once, including those for late objects, and ends. */
  finish(): Promise<void>;
  stop(): Promise<void>;
}

export function startWaitActor(admin: KubeClient, labelSelector: string): WaitActor {
  const actedAtMs = new Map<string, number>();
  const timers = new Map<string, NodeJS.Timeout>();
  const acting = new Set<Promise<unknown>>();
  const failures: unknown[] = [];

  const act = async (object: WaitedWidget): Promise<void> => {
    const { uid = "", namespace, name } = object.metadata;
    if (actedAtMs.has(uid)) return;
    actedAtMs.set(uid, Date.now());
    const at = { name, ...defined({ namespace }) };
    const status = statusOf(object);
    const patch = { type: "merge", body: { metadata: { uid }, status } } as never;
    await (
      status === undefined
        ? admin.delete(WIDGETS, at, { uid })
        : admin.patch(WIDGETS, at, patch, { subresource: "status", unguarded: true })
    ).catch((error: unknown) => {
      // The run was undone in the meantime.
      if (!isNotFound(error) && !isReplaced(error)) throw error;
    });
  };
  const reflector = createReflector<WaitedWidget>({
    client: admin,
    type: WIDGETS,
    labelSelector,
    onEvent({ kind, object }) {
      const { uid = "" } = object.metadata;
      const afterMs = object.spec?.afterMs;
      if (kind !== "added" || afterMs === undefined) return;
      const timer = setTimeout(() => {
        const done = act(object)
          .catch((error: unknown) => failures.push(error))
          .finally(() => acting.delete(done));
        acting.add(done);
      }, afterMs);
      timers.set(uid, timer);
    },
  });
  reflector.start();
  const stop = async () => {
    await reflector.stop();
    for (const timer of timers.values()) clearTimeout(timer);
    await Promise.all(acting);
  };
  return {
    actedAtMs,
    stop,
    async finish() {
      await stop();
      const { items } = await admin.list(WIDGETS, { labelSelector });
      for (const object of items) {
        if (object.spec?.afterMs !== undefined) await act(object);
      }
      if (failures.length > 0) throw new AggregateError(failures, "the actor failed");
    },
  };
}
