import { fileURLToPath } from "node:url";

/** Where `npm run build` and `npm run setup` put the pages: `index.html`, and `assets` with hashed names. */
export const DASHBOARD_FOLDER: string = fileURLToPath(new URL("../dist/public", import.meta.url));
