import { defineConfig } from "konverge";
import { backups } from "./backup.ts";

export default defineConfig({ controllers: [backups] });
