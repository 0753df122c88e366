import { defineConfig } from "konverge";
import { coldBackup } from "./cold-backup.ts";
import { nodeDrain } from "./node-drain.ts";

/** Workflows for users and schedules, without a controller. */
export default defineConfig({ workflows: [coldBackup, nodeDrain] });
