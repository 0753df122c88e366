import {
  defineController,
  generationChanged,
  type Controller,
  type ControllerOptions,
} from "@konverge/engine";
import { setControllerReference } from "@konverge/kube";
import type { ApiObject } from "@konverge/core";
import { ConfigMap, Secret } from "@konverge/kube/kinds";
import type { Scenario } from "../../../apps/cli/src/testing/index.ts";
import { App, type AppObject } from "./kinds.ts";
import { planted, type Planted, type PlantedBug } from "./planted-bug.ts";

type Options = ControllerOptions<AppObject>;

export const controller = (options: Omit<Options, "name" | "for">): Controller =>
  defineController({ name: "planted", for: App, ...options });

/** Without the changes of its own status. */
const unlessStatus = (options: Omit<Options, "name" | "for">): Controller =>
  defineController({
    name: "planted",
    for: { type: App, predicate: generationChanged },
    ...options,
  });

export const owned = (app: { metadata: { name: string } }, suffix: string) =>
  `${app.metadata.name}-${suffix}`;

/** Creates an App, changes it and deletes it; another App stays. */
export const life = (more: Partial<Scenario> = {}): Scenario => ({
  async run(user) {
    await user.apply(App, { metadata: { name: "stays" }, spec: { replicas: 2 } });
    const app = await user.apply(App, { metadata: { name: "goes" }, spec: { replicas: 1 } });
    await user.settled();
    await user.apply(App, { metadata: { name: "stays" }, spec: { replicas: 3 } });
    await user.delete(app);
    await user.settled();
  },
  ...more,
});

/** No effect outside of the cluster happens twice. */
const once =
  (more: Partial<Scenario> = {}) =>
  (current: () => Planted | undefined): Scenario =>
    life({
      always: {
        "each effect once": () => {
          const { outside = [] } = current() ?? {};
          const twice = outside.find((effect, index) => outside.indexOf(effect) !== index);
          return twice === undefined ? undefined : `${twice} happened twice`;
        },
      },
      ...more,
    });

export const withOutside = (make: (outside: string[]) => Controller): (() => Planted) => {
  return () => {
    const outside: string[] = [];
    return { controllers: [make(outside)], outside };
  };
};

/** An App that is deleted before it has a finalizer has no bucket. */
const bucketLeft = (current: () => Planted | undefined): string | undefined => {
  const { outside = [] } = current() ?? {};
  const isLeft = outside.includes("created goes") && !outside.includes("removed goes");
  return isLeft ? "it still exists" : undefined;
};

/** The classes of bugs that Sieve and the trackers of operators report. */
export const BUGS: readonly PlantedBug[] = [
  {
    name: "double create: a name from the server, and no check for an earlier child",
    check: "the result without faults",
    wrong: () =>
      planted(
        controller({
          owns: [ConfigMap],
          async reconcile({ object, kube }) {
            if (object.status?.child !== undefined) return;
            const name = owned(object, crypto.randomUUID().slice(-6));
            const made = await kube.create(ConfigMap, { name, ownedBy: object });
            await kube.mutateStatus(object, (draft) => {
              draft.status.child = made.metadata.name;
            });
          },
        }),
      ),
    right: () =>
      planted(
        controller({
          owns: [ConfigMap],
          async reconcile({ object, kube }) {
            const name = owned(object, "data");
            if ((await kube.find(ConfigMap, name)) === undefined) {
              await kube.apply(ConfigMap, { name, ownedBy: object });
            }
            if (object.status?.child === name) return;
            await kube.mutateStatus(object, (draft) => {
              draft.status.child = name;
            });
          },
        }),
      ),
    scenario: () => life({ compare: withoutRandomNames }),
  },
  {
    name: "missing finalizer: an external resource is removed only if the deletion is seen",
    check: "the bucket of a deleted App is removed",
    isPlain: true,
    wrong: withOutside((outside) =>
      controller({
        async reconcile({ object, external }) {
          const verb = object.metadata.deletionTimestamp === undefined ? "created" : "removed";
          await external(verb, () => outside.push(`${verb} ${object.metadata.name}`));
        },
      }),
    ),
    right: withOutside((outside) =>
      controller({
        async reconcile({ object, external }) {
          await external("create", () => outside.push(`created ${object.metadata.name}`));
        },
        async cleanup({ object, external }) {
          await external("remove", () => {
            const effect = `removed ${object.metadata.name}`;
            if (!outside.includes(effect)) outside.push(effect);
          });
        },
      }),
    ),
    scenario: (current) =>
      life({
        finally: {
          "the bucket of a deleted App is removed": () => bucketLeft(current),
        },
      }),
  },
  {
    name: "delete by name: the object of another owner is deleted",
    check: "the ConfigMap of the user stays",
    isPlain: true,
    wrong: () =>
      planted(
        controller({
          async reconcile({ object, kube }) {
            if (object.spec.replicas > 2) {
              await kube.delete({ type: ConfigMap, name: "settings" }).catch(() => undefined);
            }
          },
        }),
      ),
    right: () =>
      planted(
        controller({
          async reconcile({ object, kube }) {
            const found = await kube.find(ConfigMap, "settings");
            const isOwn = found?.metadata.ownerReferences?.some(
              ({ uid }) => uid === object.metadata.uid,
            );
            if (object.spec.replicas > 2 && isOwn === true && found) await kube.delete(found);
          },
        }),
      ),
    scenario: () =>
      life({
        async run(user) {
          await user.apply(ConfigMap, { metadata: { name: "settings" }, data: { of: "user" } });
          await life().run(user);
        },
        always: {
          "the ConfigMap of the user stays": (objects) =>
            objects.list(App).length > 0 && objects.get(ConfigMap, "settings") === undefined
              ? "it was deleted"
              : undefined,
        },
      }),
  },
  {
    name: "status loop: every reconcile writes a time",
    check: "no further writes",
    isPlain: true,
    wrong: () =>
      planted(
        controller({
          async reconcile({ object, kube }) {
            await kube.mutateStatus(object, (draft) => {
              draft.status.checkedAt = new Date().toISOString();
            });
          },
        }),
      ),
    right: () =>
      planted(
        controller({
          async reconcile({ object, kube }) {
            await kube.mutateStatus(object, (draft) => {
              draft.status.phase = "Ready";
            });
          },
        }),
      ),
    scenario: () => life(),
  },
  {
    name: "lost update: an unguarded write of the whole spec",
    check: "the result without faults",
    wrong: () =>
      planted(
        controller({
          async reconcile({ object, kube }) {
            if (object.spec.note === "noted") return;
            const settings = await kube.find(ConfigMap, "settings");
            const note = settings?.data?.["note"] ?? "noted";
            await kube.apply(
              App,
              {
                metadata: { name: object.metadata.name },
                spec: { replicas: object.spec.replicas, note },
              },
              { force: true },
            );
          },
        }),
      ),
    right: () =>
      planted(
        controller({
          async reconcile({ object, kube }) {
            if (object.spec.note === "noted") return;
            const settings = await kube.find(ConfigMap, "settings");
            const note = settings?.data?.["note"] ?? "noted";
            await kube.mutate(object, (draft) => {
              draft.spec.note = note;
            });
          },
        }),
      ),
    scenario: () => life(),
  },
  {
    name: "non-idempotent external call: a repeated attempt charges again",
    check: "each effect once",
    wrong: withOutside((outside) =>
      controller({
        async reconcile({ object, kube, external }) {
          if (object.status?.phase === "Paid") return;
          await external("charge", () => outside.push(`charged ${object.metadata.uid}`));
          await kube.mutateStatus(object, (draft) => {
            draft.status.phase = "Paid";
          });
        },
      }),
    ),
    right: withOutside((outside) =>
      controller({
        async reconcile({ object, kube, external }) {
          if (object.status?.phase === "Paid") return;
          await external("charge", () => {
            const effect = `charged ${object.metadata.uid}`;
            if (!outside.includes(effect)) outside.push(effect);
          });
          await kube.mutateStatus(object, (draft) => {
            draft.status.phase = "Paid";
          });
        },
      }),
    ),
    scenario: once(),
  },
  {
    name: "orphan: a child without an owner outlives its App",
    check: "a deleted App has no ConfigMap",
    isPlain: true,
    wrong: () =>
      planted(
        controller({
          async reconcile({ object, kube }) {
            await kube.apply(ConfigMap, {
              metadata: { name: owned(object, "data") },
              data: { replicas: String(object.spec.replicas) },
            });
          },
        }),
      ),
    right: () =>
      planted(
        controller({
          owns: [ConfigMap],
          async reconcile({ object, kube }) {
            await kube.apply(ConfigMap, {
              name: owned(object, "data"),
              ownedBy: object,
              data: { replicas: String(object.spec.replicas) },
            });
          },
        }),
      ),
    scenario: () =>
      life({
        finally: {
          "a deleted App has no ConfigMap": (objects) =>
            objects.get(ConfigMap, "goes-data") === undefined ? undefined : "goes-data exists",
        },
      }),
  },
  {
    name: "wrong generation: the status claims the newest generation for older work",
    check: "the status is true",
    wrong: () =>
      planted(
        controller({
          owns: [ConfigMap],
          async reconcile({ object, kube }) {
            await kube.apply(ConfigMap, {
              name: owned(object, "data"),
              ownedBy: object,
              data: { replicas: String(object.spec.replicas) },
            });
            await kube.mutateStatus(object, (draft) => {
              draft.status.observedGeneration = draft.metadata.generation ?? 0;
            });
          },
        }),
      ),
    right: () =>
      planted(
        controller({
          owns: [ConfigMap],
          async reconcile({ object, kube }) {
            await kube.apply(ConfigMap, {
              name: owned(object, "data"),
              ownedBy: object,
              data: { replicas: String(object.spec.replicas) },
            });
            const { generation = 0 } = object.metadata;
            await kube.mutateStatus(object, (draft) => {
              draft.status.observedGeneration = generation;
            });
          },
        }),
      ),
    scenario: () => life({ always: { "the status is true": statusIsTrue } }),
  },
  {
    name: "forgotten requeue: an object that is not ready is never checked again",
    check: "the App is ready",
    isPlain: true,
    wrong: () => waiting(false),
    right: () => waiting(true),
    scenario: () =>
      life({
        async run(user) {
          await life().run(user);
          await user.apply(ConfigMap, { metadata: { name: "permit" }, data: { given: "yes" } });
          await user.sleep(60_000);
          await user.settled();
        },
        finally: {
          "the App is ready": (objects) =>
            objects.get(App, "stays")?.status?.phase === "Ready" ? undefined : "it is not",
        },
      }),
  },
  {
    name: "swallowed error: a failed write counts as done",
    check: "no further writes",
    wrong: () =>
      planted(
        controller({
          async reconcile({ object, kube }) {
            const { replicas } = object.spec;
            if (object.status?.count === replicas) return;
            await kube
              .mutateStatus(object, (draft) => {
                draft.status.count = replicas;
              })
              .catch(() => undefined);
          },
        }),
      ),
    right: () =>
      planted(
        controller({
          async reconcile({ object, kube }) {
            const { replicas } = object.spec;
            if (object.status?.count === replicas) return;
            await kube.mutateStatus(object, (draft) => {
              draft.status.count = replicas;
            });
          },
        }),
      ),
    scenario: () => life(),
  },
  {
    name: "list without owner check: the children of another App count",
    check: "an App has its own children",
    isPlain: true,
    wrong: () => counting(false),
    right: () => counting(true),
    scenario: () =>
      life({
        finally: {
          "an App has its own children": (objects) => {
            const names = objects.list(ConfigMap).map(({ metadata }) => metadata.name);
            const missing = ["stays-0", "stays-1", "stays-2"].filter(
              (name) => !names.includes(name),
            );
            return missing.length === 0 ? undefined : `missing: ${missing.join(", ")}`;
          },
        },
      }),
  },
  {
    name: "name reuse: the child of an earlier object with the name is taken for its own",
    check: "the child belongs to the App",
    wrong: () => reusing(false),
    right: () => reusing(true),
    scenario: () => ({
      async run(user) {
        const first = await user.apply(App, { metadata: { name: "web" }, spec: { note: "one" } });
        await user.settled();
        await user.delete(first);
        await user.apply(App, { metadata: { name: "web" }, spec: { note: "two" } });
        await user.settled();
      },
      finally: {
        "the child belongs to the App": (objects) => {
          const app = objects.get(App, "web");
          const data = objects.get(ConfigMap, "web-data")?.data?.["note"];
          return app !== undefined && data !== app.spec.note ? `it has ${data}` : undefined;
        },
      },
    }),
  },
  {
    name: "status before work: the status says ready before the child exists",
    check: "a ready App has its child",
    isPlain: true,
    wrong: () => ordered("status", "child"),
    right: () => ordered("child", "status"),
    scenario: () =>
      life({
        always: {
          "a ready App has its child": (objects) => {
            const bad = objects
              .list(App)
              .find(
                ({ metadata, status }) =>
                  metadata.deletionTimestamp === undefined &&
                  status?.phase === "Ready" &&
                  objects.get(ConfigMap, `${metadata.name}-data`) === undefined,
              );
            return bad === undefined ? undefined : `${bad.metadata.name} has none`;
          },
        },
      }),
  },
  {
    name: "partial children: the first child counts as all of them",
    check: "the result without faults",
    wrong: () => pair(false),
    right: () => pair(true),
    scenario: () => life(),
  },
  {
    name: "early finalizer: it is removed before the cleanup has ended",
    check: "the bucket of a deleted App is removed",
    wrong: withOutside((outside) =>
      controller({
        async reconcile({ object, kube, external }) {
          const finalizer = "planted.konverge.dev/bucket";
          const has = object.metadata.finalizers?.includes(finalizer) === true;
          if (object.metadata.deletionTimestamp === undefined) {
            if (has) {
              await external("create", () => outside.push(`created ${object.metadata.name}`));
              return;
            }
            await kube.mutate(object, (draft) => {
              draft.metadata.finalizers = [...(draft.metadata.finalizers ?? []), finalizer];
            });
            return;
          }
          if (!has) return;
          await kube.mutate(object, (draft) => {
            draft.metadata.finalizers = (draft.metadata.finalizers ?? []).filter(
              (one) => one !== finalizer,
            );
          });
          await external("remove", () => outside.push(`removed ${object.metadata.name}`));
        },
      }),
    ),
    right: withOutside((outside) =>
      controller({
        async reconcile({ object, external }) {
          await external("create", () => outside.push(`created ${object.metadata.name}`));
        },
        async cleanup({ object, external }) {
          await external("remove", () => outside.push(`removed ${object.metadata.name}`));
        },
      }),
    ),
    scenario: (current) =>
      life({
        finally: {
          "the bucket of a deleted App is removed": (objects) =>
            objects.get(App, "goes") === undefined ? bucketLeft(current) : undefined,
        },
      }),
  },
  {
    name: "generation not observed: changes after the first success are ignored",
    check: "the child follows the spec",
    isPlain: true,
    wrong: () => observing(false),
    right: () => observing(true),
    scenario: () =>
      life({
        finally: {
          "the child follows the spec": (objects) =>
            objects.get(ConfigMap, "stays-data")?.data?.["replicas"] === "3"
              ? undefined
              : "it has the first value",
        },
      }),
  },
  {
    name: "requeue without backoff: a busy loop while something is missing",
    check: "no busy loops",
    isPlain: true,
    wrong: () => polling(1),
    right: () => polling(30_000),
    scenario: () => life(),
  },
  {
    name: "time in the spec: each reconcile changes the spec",
    check: "the controllers come to rest",
    isPlain: true,
    wrong: () =>
      planted(
        controller({
          async reconcile({ object, kube, requeueAfter }) {
            await kube.mutate(object, (draft) => {
              draft.spec.stamp = String(Date.now());
            });
            return requeueAfter("1m");
          },
        }),
      ),
    right: () =>
      planted(
        controller({
          async reconcile({ object, kube, requeueAfter }) {
            if (object.spec.stamp === undefined) {
              await kube.mutate(object, (draft) => {
                draft.spec.stamp = object.metadata.uid ?? "";
              });
            }
            return requeueAfter("1m");
          },
        }),
      ),
    scenario: () => life(),
  },
  {
    name: "state in memory: a restart loses track of completed work",
    check: "the result without faults",
    wrong: withOutside((outside) => {
      const done = new Map<string, Set<string>>();
      return controller({
        async reconcile({ object, kube }) {
          // The memory of a process, which ends with it.
          const memory = done.get(outside.join()) ?? new Set<string>();
          done.set(outside.join(), memory);
          const uid = object.metadata.uid ?? "";
          if (memory.has(uid)) return;
          memory.add(uid);
          await kube.mutateStatus(object, (draft) => {
            draft.status.phase = "Ready";
          });
        },
      });
    }),
    right: () => ordered("child", "status"),
    scenario: () => life(),
  },
  {
    name: "surplus children stay: a smaller spec deletes nothing after a crash",
    check: "the result without faults",
    wrong: () => shrinking(false),
    right: () => shrinking(true),
    scenario: () => ({
      async run(user) {
        await user.apply(App, { metadata: { name: "web" }, spec: { replicas: 3 } });
        await user.settled();
        await user.apply(App, { metadata: { name: "web" }, spec: { replicas: 1 } });
        await user.settled();
      },
    }),
  },
  {
    name: "already exists is final: a create whose response was lost fails forever",
    check: "the controllers come to rest",
    wrong: () =>
      planted(
        controller({
          owns: [Secret],
          async reconcile({ object, kube }) {
            if (object.status?.phase === "Ready") return;
            await kube.create(Secret, { name: owned(object, "token"), ownedBy: object });
            await kube.mutateStatus(object, (draft) => {
              draft.status.phase = "Ready";
            });
          },
        }),
      ),
    right: () =>
      planted(
        controller({
          owns: [Secret],
          async reconcile({ object, kube }) {
            if (object.status?.phase === "Ready") return;
            await kube.createOrUpdate(Secret, owned(object, "token"), (draft) => {
              setControllerReference(draft, object);
            });
            await kube.mutateStatus(object, (draft) => {
              draft.status.phase = "Ready";
            });
          },
        }),
      ),
    scenario: () => life(),
  },
  {
    name: "counter: an increment per attempt instead of per change",
    check: "no further writes",
    isPlain: true,
    wrong: () =>
      planted(
        unlessStatus({
          async reconcile({ object, kube }) {
            await kube.mutateStatus(object, (draft) => {
              draft.status.count = (draft.status.count ?? 0) + 1;
            });
          },
        }),
      ),
    right: () =>
      planted(
        unlessStatus({
          async reconcile({ object, kube }) {
            const { generation = 0 } = object.metadata;
            await kube.mutateStatus(object, (draft) => {
              draft.status.count = object.spec.replicas;
              draft.status.observedGeneration = generation;
            });
          },
        }),
      ),
    scenario: () => life(),
  },
];

function statusIsTrue(objects: Parameters<NonNullable<Scenario["always"]>[string]>[0]) {
  const bad = objects.list(App).find(({ metadata, spec, status }) => {
    const isCurrent = status?.observedGeneration === metadata.generation;
    const data = objects.get(ConfigMap, `${metadata.name}-data`)?.data;
    const isGone = metadata.deletionTimestamp !== undefined;
    return isCurrent && !isGone && data?.["replicas"] !== String(spec.replicas);
  });
  return bad === undefined ? undefined : `${bad.metadata.name} claims a generation it has not done`;
}

/** The names of children end in six random characters. */
function withoutRandomNames(object: ApiObject): unknown {
  return JSON.parse(JSON.stringify(object).replaceAll(/-[0-9a-f]{6}"/g, '-random"'));
}

function waiting(isRequeued: boolean): Planted {
  return planted(
    controller({
      async reconcile({ object, kube, requeueAfter, awaitChange }) {
        if (object.status?.phase === "Ready") return;
        const permit = await kube.find(ConfigMap, "permit");
        if (permit === undefined) return isRequeued ? requeueAfter("10s") : awaitChange();
        await kube.mutateStatus(object, (draft) => {
          draft.status.phase = "Ready";
        });
      },
    }),
  );
}

function counting(isOwnedBy: boolean): Planted {
  return planted(
    controller({
      owns: [ConfigMap],
      async reconcile({ object, kube }) {
        const found = await kube.list(ConfigMap, isOwnedBy ? { ownedBy: object } : {});
        for (let n = found.length; n < object.spec.replicas; n++) {
          const present = new Set(found.map(({ metadata }) => metadata.name));
          const name = Array.from({ length: object.spec.replicas }, (_, at) =>
            owned(object, String(at)),
          ).filter((each) => !present.has(each))[n - found.length];
          if (name !== undefined) await kube.apply(ConfigMap, { name, ownedBy: object });
        }
      },
    }),
  );
}

function reusing(checksOwner: boolean): Planted {
  return planted(
    controller({
      owns: [ConfigMap],
      async reconcile({ object, kube, requeueAfter }) {
        const name = owned(object, "data");
        const found = await kube.find(ConfigMap, name);
        const isOwn = found?.metadata.ownerReferences?.[0]?.uid === object.metadata.uid;
        if (found !== undefined && checksOwner && !isOwn) {
          // The garbage collector has not deleted it yet.
          return requeueAfter("5s");
        }
        if (found !== undefined && !checksOwner) {
          if (isOwn) return;
          await kube.mutate(found, (draft) => {
            delete draft.metadata.ownerReferences;
            setControllerReference(draft, object);
          });
          return;
        }
        if (found !== undefined) return;
        await kube.create(ConfigMap, {
          name,
          ownedBy: object,
          data: { note: object.spec.note ?? "" },
        });
      },
    }),
  );
}

function ordered(...steps: readonly ("status" | "child")[]): Planted {
  return planted(
    controller({
      owns: [ConfigMap],
      async reconcile({ object, kube }) {
        for (const step of steps) {
          if (step === "child") {
            await kube.apply(ConfigMap, { name: owned(object, "data"), ownedBy: object });
          } else {
            await kube.mutateStatus(object, (draft) => {
              draft.status.phase = "Ready";
            });
          }
        }
      },
    }),
  );
}

function pair(looksAtBoth: boolean): Planted {
  return planted(
    controller({
      owns: [ConfigMap, Secret],
      async reconcile({ object, kube }) {
        const first = await kube.find(ConfigMap, owned(object, "data"));
        if (first !== undefined && !looksAtBoth) return;
        await kube.apply(ConfigMap, { name: owned(object, "data"), ownedBy: object });
        await kube.apply(Secret, { name: owned(object, "token"), ownedBy: object });
      },
    }),
  );
}

function observing(comparesGeneration: boolean): Planted {
  return planted(
    controller({
      owns: [ConfigMap],
      async reconcile({ object, kube }) {
        const { generation = 0 } = object.metadata;
        const isDone = comparesGeneration
          ? object.status?.observedGeneration === generation
          : object.status?.phase === "Ready";
        if (isDone) return;
        await kube.apply(ConfigMap, {
          name: owned(object, "data"),
          ownedBy: object,
          data: { replicas: String(object.spec.replicas) },
        });
        await kube.mutateStatus(object, (draft) => {
          draft.status.phase = "Ready";
          draft.status.observedGeneration = generation;
        });
      },
    }),
  );
}

function polling(ms: number): Planted {
  return planted(
    controller({
      async reconcile({ kube, requeueAfter }) {
        if ((await kube.find(ConfigMap, "permit")) === undefined) return requeueAfter(ms);
      },
    }),
  );
}

function shrinking(usesList: boolean): Planted {
  return planted(
    controller({
      owns: [ConfigMap],
      async reconcile({ object, kube }) {
        const { replicas } = object.spec;
        const before = object.status?.count ?? 0;
        for (let n = 0; n < replicas; n++) {
          await kube.apply(ConfigMap, { name: owned(object, String(n)), ownedBy: object });
        }
        if (!usesList) {
          // The status now has the number that the spec requests, before the surplus is deleted.
          await kube.mutateStatus(object, (draft) => {
            draft.status.count = replicas;
          });
          for (let n = replicas; n < before; n++) {
            await kube.delete({ type: ConfigMap, name: owned(object, String(n)) });
          }
          return;
        }
        const wanted = new Set(
          Array.from({ length: replicas }, (_, n) => owned(object, String(n))),
        );
        for (const child of await kube.list(ConfigMap, { ownedBy: object })) {
          if (!wanted.has(child.metadata.name)) await kube.delete(child);
        }
        await kube.mutateStatus(object, (draft) => {
          draft.status.count = replicas;
        });
      },
    }),
  );
}
