import { defineConfig } from "konverge";
import { nodePool } from "./node-pool.ts";

/** One operator with one controller that writes objects of the other operator. */
export default defineConfig({ controllers: [nodePool] });
