import { defineConfig } from "konverge";
import { autoscaler } from "./autoscaler.ts";
import { nodePool } from "./node-pool.ts";

/** One operator with both controllers. */
export default defineConfig({ controllers: [nodePool, autoscaler] });
