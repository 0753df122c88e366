import { defineConfig } from "konverge";
import { nodePool } from "./node-pool.ts";

/** One operator with one controller; it writes to the other operator's objects. */
export default defineConfig({ controllers: [nodePool] });
