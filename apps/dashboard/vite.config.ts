import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

// Also where it is built by a tool or a test that says otherwise: a build for development is a third larger.
process.env["NODE_ENV"] = "production";

/** Builds what apps/api serves: relative to any base path, every file but the page itself named by its content. */
export default defineConfig({
  root: fileURLToPath(new URL("browser", import.meta.url)),
  base: "./",
  logLevel: "warn",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../dist/public",
    emptyOutDir: true,
    target: "es2023",
    // light-dark() and nesting as they are written.
    cssTarget: ["chrome125", "firefox128", "safari17.5"],
    cssCodeSplit: false,
    // The policy allows no data: in scripts, and the browsers above preload by themselves.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
