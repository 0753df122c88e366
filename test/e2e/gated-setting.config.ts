import { defineConfig, defineWorkflow, field, gone, type ApiObject } from "konverge";
import { ConfigMap } from "../../apps/examples/src/config-map.ts";

interface Setting extends ApiObject {
  readonly data?: Readonly<Record<string, string>>;
}

/** Writes an object, waits until somebody says yes in it, takes it away and waits until it is gone. */
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

export default defineConfig({ workflows: [gated] });
