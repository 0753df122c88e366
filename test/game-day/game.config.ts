/** The configuration of the game day's workers. They write a journal, so that the script can compare effects with promises. */
import { appendFileSync } from "node:fs";
import { defineConfig, defineController, defineWorkflow, type ResourceType } from "konverge";
import type { Widget } from "../integration/kube/kube-servers.ts";

const namespace = process.env["GAME_DAY_NAMESPACE"] ?? "default";
const reconcileMs = Number(process.env["GAME_DAY_RECONCILE_MS"] ?? "0");
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
    journal(`reconcile ${object.metadata.name}`);
    await new Promise((resolve) => setTimeout(resolve, reconcileMs));
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

const ship = defineWorkflow("ship", { version: 1 }, async (w, name: string) => {
  await w.step("charge", () => journal(`charge ${name}`));
  await w.step("send", () => journal(`send ${name}`));
  return name;
});

export default defineConfig({
  controllers: [widgets],
  workflows: [ship],
  settings: { namespaces: [namespace], leaseNamespace: namespace },
});
