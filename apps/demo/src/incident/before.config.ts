import { defineConfig } from "konverge";
import { controllers } from "./controllers.ts";
import { billing, schedules, workflows } from "./workflows.ts";

/** The release before the incident. */
export default defineConfig({ controllers, workflows: [...workflows, billing(1)], schedules });
