import { defineConfig } from "konverge";
import { release } from "./release.ts";

/** Workflows alone, without a controller. */
export default defineConfig({ workflows: [release] });
