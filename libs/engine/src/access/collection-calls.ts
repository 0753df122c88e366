import { defined, type ApiObject, type ResourceType } from "@konverge/core";
import { assertSelected, readPages, type KindName, type PageCallOptions } from "@konverge/kube";
import type { AttemptKube } from "../define/attempt-kube.ts";
import type { CallHost } from "./call-host.ts";
import { nameOf, resolveKind } from "./resolve-target.ts";
import { clientFor } from "./write-calls.ts";

type CollectionCalls = Pick<AttemptKube, "pages" | "deleteCollection">;

export function createCollectionCalls(host: CallHost): CollectionCalls {
  const inside = (type: ResourceType, namespace = host.namespace) =>
    type.scope === "Cluster" ? undefined : namespace;
  return {
    async *pages<T extends ApiObject>(
      kind: ResourceType<T> | KindName,
      { namespace, ...selection }: PageCallOptions = {},
    ) {
      const call: CallHost["call"] = (run) => host.call(run);
      const type = await call(() => resolveKind(host.client, kind));
      const options = { ...selection, ...defined({ namespace: inside(type, namespace) }) };
      for await (const page of readPages(host.client, type, { options, call })) {
        yield page.map((item) => host.show(type, item));
      }
    },
    deleteCollection: (kind, { namespace, dryRun, all, ...options }) =>
      host.call(async () => {
        const type = await resolveKind(host.client, kind);
        assertSelected(type, { ...options, ...defined({ all }) });
        const from = defined({ namespace: inside(type, namespace) });
        const client = clientFor(host, { dryRun });
        const deleted = await client.deleteCollection(type, { ...options, ...from });
        if (dryRun === true) return deleted.length;
        for (const object of deleted) {
          host.noteWrite({ verb: "delete", type, name: nameOf(object), object });
        }
        return deleted.length;
      }),
  };
}
