/** A controller of Gauges with @dot-i/k8s-operator; KUBECONFIG names the cluster. */
import { once } from "node:events";
import dotI from "@dot-i/k8s-operator";

class GaugeOperator extends dotI.default {
  /** @override */
  async init() {
    await this.watchResource(
      "bench.konverge.dev",
      "v1",
      "gauges",
      async ({ meta, object, type }) => {
        if (type === "DELETED" || object.status?.seen === object.spec.step) return;
        // A stale version answers null; the event of the newer version is on its way.
        await this.patchResourceStatus(meta, { seen: object.spec.step });
      },
      "default",
    );
  }
}

const operator = new GaugeOperator();
await operator.start();
console.log("ready");
process.stdin.resume();
await once(process.stdin, "end");
operator.stop();
process.exit(0);
