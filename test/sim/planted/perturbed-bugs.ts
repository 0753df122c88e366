import { setControllerReference } from "@konverge/kube";
import { ConfigMap } from "@konverge/kube/kinds";
import { controller, life, owned, withOutside } from "./bugs.ts";
import { App } from "./kinds.ts";
import { planted, type Planted, type PlantedBug } from "./planted-bug.ts";

/** Bugs that only faults find. A run without faults finds other variants of them. */
export const PERTURBED_BUGS: readonly PlantedBug[] = [
  {
    name: "late finalizer: the external resource exists before the finalizer does",
    check: "the bucket of a deleted App is removed",
    wrong: bucket("create", "protect"),
    right: bucket("protect", "create"),
    scenario: (current) => ({
      async run(user) {
        const app = await user.apply(App, { metadata: { name: "goes" }, spec: {} });
        await user.settled();
        await user.delete(app);
        await user.settled();
      },
      finally: {
        "the bucket of a deleted App is removed": () => {
          const { outside = [] } = current() ?? {};
          const isLeft = outside.includes("created goes") && !outside.includes("removed goes");
          return isLeft ? "it still exists" : undefined;
        },
      },
    }),
  },
  {
    name: "orphan after a crash: only the attempt that creates a child adopts it",
    check: "the result without faults",
    wrong: () => adopting(false),
    right: () => adopting(true),
    scenario: () => life(),
  },
  {
    name: "counter in two writes: a crash between them counts a change twice",
    check: "the result without faults",
    wrong: () => counter(false),
    right: () => counter(true),
    scenario: () => life(),
  },
];

const FINALIZER = "planted.konverge.dev/bucket";

/** Keeps a bucket outside of the cluster for each App. */
function bucket(...steps: readonly ("create" | "protect")[]): () => Planted {
  return withOutside((outside) => {
    const note = (effect: string) => {
      if (!outside.includes(effect)) outside.push(effect);
    };
    return controller({
      async reconcile({ object, kube, external }) {
        const { name, finalizers = [], deletionTimestamp } = object.metadata;
        const isProtected = finalizers.includes(FINALIZER);
        if (deletionTimestamp !== undefined) {
          if (!isProtected) return;
          await external("remove", () => note(`removed ${name}`));
          await kube.mutate(object, (draft) => {
            draft.metadata.finalizers = finalizers.filter((one) => one !== FINALIZER);
          });
          return;
        }
        for (const step of steps) {
          if (step === "create") {
            await external("create", () => note(`created ${name}`));
            await kube.find(ConfigMap, "settings");
          } else if (!isProtected) {
            await kube.mutate(object, (draft) => {
              draft.metadata.finalizers = [...finalizers, FINALIZER];
            });
          }
        }
      },
    });
  });
}

function adopting(createsOwned: boolean): Planted {
  return planted(
    controller({
      owns: [ConfigMap],
      async reconcile({ object, kube }) {
        const name = owned(object, "data");
        if ((await kube.find(ConfigMap, name)) !== undefined) return;
        if (createsOwned) {
          await kube.create(ConfigMap, { name, ownedBy: object });
          return;
        }
        const child = await kube.create(ConfigMap, { metadata: { name } });
        await kube.mutate(child, (draft) => {
          setControllerReference(draft, object);
        });
      },
    }),
  );
}

function counter(inOneWrite: boolean): Planted {
  return planted(
    controller({
      async reconcile({ object, kube }) {
        const { generation = 0 } = object.metadata;
        if (object.status?.observedGeneration === generation) return;
        const { replicas } = object.spec;
        await kube.mutateStatus(object, (draft) => {
          draft.status.count = inOneWrite ? replicas : (draft.status.count ?? 0) + replicas;
          if (inOneWrite) draft.status.observedGeneration = generation;
        });
        if (inOneWrite) return;
        await kube.mutateStatus(object, (draft) => {
          draft.status.observedGeneration = generation;
        });
      },
    }),
  );
}
