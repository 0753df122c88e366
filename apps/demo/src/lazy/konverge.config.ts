import { defineConfig } from "konverge";
import { autoscaler } from "./autoscaler.ts";
import { nodePool } from "./node-pool.ts";

/** One operator with both controllers of the lazy act. */
export default defineConfig({ controllers: [nodePool, autoscaler] });
