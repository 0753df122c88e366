/** The configuration of the workers of two versions, which load a copy of it. They write a journal of their effects. */
import { appendFileSync } from "node:fs";
import { defineConfig, defineController, defineWorkflow, type ResourceType } from "konverge";
import { ConfigMap } from "konverge/kinds";
import type { Widget } from "../integration/kube/kube-servers.ts";

const { GAME_DAY_NAMESPACE: namespace = "default", VERSIONS_NAME: version = "" } = process.env;
const journal = (line: string): void =>
  appendFileSync(process.env["GAME_DAY_JOURNAL"] ?? "/dev/null", `${line}\n`);

const Widgets: ResourceType<Widget> = {
  group: "game-day.konverge.dev",
  version: "v1",
  kind: "Widget",
  resource: "widgets",
  scope: "Namespaced",
};

const widgets = defineController({
  name: "widgets",
  for: Widgets,
  async reconcile({ object, kube }) {
    const value = object.spec?.["value"] ?? null;
    journal(`reconcile ${version}`);
    if (object.status?.["value"] === value) return;
    await kube.mutateStatus(
      object,
      (draft) => {
        draft.status["value"] = value;
      },
      { strategy: "fields" },
    );
  },
});

/** The ConfigMap that counts the increments of a run. Few of them, so that runs compete for each. */
const counterOf = (name: string) => `counts-${Number(name.split("-").at(-1)) % 4}`;

const part = defineWorkflow("part", { version: 1 }, async (w, name: string) => {
  await w.step("act", () => journal(`part ${name}`));
});

const ship = defineWorkflow(
  "ship",
  { version: 1, kinds: [ConfigMap], concurrency: { runs: 20 } },
  async (w, name: string) => {
    await w.step("charge", () => journal(`charge ${name}`));
    await w.sleep("cool", "200ms");
    await w.signal("approve");
    await w.step("count", async (k) => {
      const target = { type: ConfigMap, namespace, name: counterOf(name) };
      await k.mutate(target, (draft) => {
        draft.data = { ...draft.data, [name]: `${draft.data?.[name] ?? ""}I` };
      });
    });
    await w.child("part", part, name);
    await w.step("send", () => journal(`send ${name}`));
  },
);

export default defineConfig({
  controllers: [widgets],
  workflows: [ship, part],
  settings: { namespaces: [namespace], leaseNamespace: namespace },
});
