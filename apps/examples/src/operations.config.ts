import { defineConfig } from "konverge";
import { coldBackup } from "./cold-backup.ts";
import { nodeDrain } from "./node-drain.ts";

/** What people and schedules start, without a controller. */
export default defineConfig({ workflows: [coldBackup, nodeDrain] });
