import { defineConfig } from "konverge";
import { autoscaler } from "./autoscaler.ts";

/** One operator with one controller; it writes to the other operator's objects. */
export default defineConfig({ controllers: [autoscaler] });
