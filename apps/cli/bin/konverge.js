#!/usr/bin/env node
// Older versions of Node.js cannot load the rest, so nothing else is imported before this check.
import { readFileSync } from "node:fs";

const { engines } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const oldest = engines.node.replace(">=", "");
const [major, minor] = process.versions.node.split(".").map(Number);
const [oldestMajor, oldestMinor] = oldest.split(".").map(Number);
if (major < oldestMajor || (major === oldestMajor && minor < oldestMinor)) {
  process.stderr.write(
    `konverge: needs Node.js ${oldest} or later (this is ${process.versions.node}); install it from https://nodejs.org and run the command again\n`,
  );
  process.exit(2);
}
await import("../dist/main.js");
