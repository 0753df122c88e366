import { defineConfig } from "konverge";
import { controllers } from "./controllers.ts";
import { billing, schedules, workflows } from "./workflows.ts";

/** The release of the incident: its `billing` blocks the runs that are under way. */
export default defineConfig({ controllers, workflows: [...workflows, billing(2)], schedules });
