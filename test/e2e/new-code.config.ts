import { defineConfig, defineController } from "konverge";
import { ConfigMap } from "konverge/kinds";

const Widget = {
  group: "plan-cli.test.konverge.dev",
  version: "v1",
  kind: "Widget",
  resource: "widgets",
  scope: "Namespaced",
} as const;

/** Deletes what the running version labels. */
const widgets = defineController({
  name: "widgets",
  for: Widget,
  reconcile: async ({ object, kube }) => {
    const { namespace = "", name } = object.metadata;
    const map = await kube.find(ConfigMap, { namespace, name });
    if (map !== undefined) await kube.delete(map);
  },
});

/** Is not in the running version. */
const labels = defineController({
  name: "labels",
  for: Widget,
  reconcile: async ({ object, kube }) => {
    await kube.mutate(object, (draft) => {
      draft.metadata.labels = { ...draft.metadata.labels, version: "2" };
    });
  },
});

export default defineConfig({ controllers: [widgets, labels] });
