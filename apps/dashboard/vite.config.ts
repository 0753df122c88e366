import { fileURLToPath } from "node:url";
import { defaultClientConditions, defineConfig } from "vite";
import { thirdPartyNotices } from "./third-party-notices.ts";

// Overrides the environment of tools and tests: a development build is a third larger.
process.env["NODE_ENV"] = "production";

/** Builds the files that the API serves: relative to any base path, with hashed names for all but the page itself. */
export default defineConfig({
  root: fileURLToPath(new URL("browser", import.meta.url)),
  base: "./",
  logLevel: "warn",
  // Packages may not be built yet.
  resolve: { conditions: ["@konverge/source", ...defaultClientConditions] },
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  plugins: [thirdPartyNotices()],
  build: {
    outDir: "../dist/public",
    emptyOutDir: true,
    target: "es2023",
    // Keeps light-dark() and nesting.
    cssTarget: ["chrome125", "firefox128", "safari17.5"],
    cssCodeSplit: false,
    // The content security policy forbids data: in scripts. The browsers above preload without a polyfill.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
