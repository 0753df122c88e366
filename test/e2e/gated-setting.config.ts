import { defineConfig, defineWorkflow, field, gone, type ApiObject } from "konverge";
import { ConfigMap, Deployment, Pod } from "konverge/kinds";

interface Setting extends ApiObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** Writes an object, waits until its data has the answer "yes", deletes it and waits for the deletion. */
const gated = defineWorkflow(
  "gated",
  { version: 1, kinds: [ConfigMap] },
  async (w, name: string) => {
    const metadata = { namespace: "default", name };
    const made = await w.step("write", (k) =>
      k.apply({ apiVersion: "v1", kind: "ConfigMap", metadata, data: { asks: "well?" } }),
    );
    const seen = await w.waitFor(
      "said yes",
      field<Setting>(made, ({ data }) => data?.["answer"] === "yes"),
    );
    await w.step("take away", (k) => k.delete(seen));
    await w.waitFor("gone", gone(seen));
    return seen.uid;
  },
);

/** Uses the subresources of the kinds. */
const resized = defineWorkflow(
  "resized",
  { version: 1, kinds: [Deployment, Pod] },
  async (w, name: string) => {
    const at = { namespace: "default", name };
    await w.step("scale", (k) => k.scale({ apiVersion: "apps/v1", kind: "Deployment", ...at }, 3));
    const pod = { apiVersion: "v1", kind: "Pod", ...at };
    await w.step("evict", (k) => k.evict(pod));
    await w.waitFor("evicted", gone(pod));
  },
);

export default defineConfig({ workflows: [gated, resized] });
