import { readFileSync } from "node:fs";
import { KonvergeError } from "@konverge/core";

/** The version of the installed package. */
export function readVersion(): string {
  const manifest: unknown = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
  );
  if (typeof manifest === "object" && manifest !== null && "version" in manifest)
    return String(manifest.version);
  throw new KonvergeError("internal", "package.json of konverge has no version");
}
