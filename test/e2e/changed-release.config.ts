import { defineConfig, defineWorkflow } from "konverge";

/** The workflow of held-release.config.ts, with a signal in place of its first step. */
const release = defineWorkflow("release", { version: 1 }, async (w) => await w.signal("draft"));

export default defineConfig({ workflows: [release] });
