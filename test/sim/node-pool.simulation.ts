import type { Simulation } from "../../apps/cli/src/testing/index.ts";
import { nodePool } from "../../apps/examples/src/node-pool.ts";
import { NodePool } from "../../apps/examples/src/resources.ts";

const poolOf = (replicas: number) => ({ metadata: { name: "blue" }, spec: { replicas } });

/** Creates, changes and deletes a NodePool. */
export default {
  config: { controllers: [nodePool] },
  scenario: {
    async run(user) {
      const pool = await user.apply(NodePool, poolOf(3));
      await user.settled();
      await user.apply(NodePool, poolOf(1));
      await user.settled();
      await user.delete(pool);
      await user.settled();
    },
  },
} satisfies Simulation;
