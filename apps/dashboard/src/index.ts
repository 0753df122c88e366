import { fileURLToPath } from "node:url";

/** The folder of the built pages: `index.html`, and `assets` with hashed names. */
export const DASHBOARD_FOLDER: string = fileURLToPath(new URL("../dist/public", import.meta.url));
