import { defineConfig } from "konverge";
import { databaseBackups, databaseDump } from "./database-backup.ts";
import { memcached } from "./memcached.ts";
import { scheduledJobs } from "./scheduled-job.ts";
import { webApp } from "./web-app.ts";

export default defineConfig({
  controllers: [webApp, databaseBackups, memcached, scheduledJobs],
  workflows: [databaseDump],
});
