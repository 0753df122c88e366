import { defineConfig } from "konverge";
import { autoscaler } from "./autoscaler.ts";

/** One operator with one controller that writes objects of the other operator. */
export default defineConfig({ controllers: [autoscaler] });
