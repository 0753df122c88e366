import { findChromium, NO_CHROMIUM } from "../../apps/demo/src/incident/find-chromium.ts";
import { isOnPath, succeeds } from "../../infra/host/run.js";

const WAIT_FOR_APT = ["-o", "DPkg::Lock::Timeout=120"];

/** Installs Chromium on a bare CI machine. Elsewhere, and if that fails, its tests are skipped with the reason. */
export function obtainChromium(log: (line: string) => void): void {
  if (findChromium() !== undefined) return;
  if (process.env["CI"] !== "true" || process.getuid?.() !== 0 || !isOnPath("apt-get")) return;
  const env = { ...process.env, DEBIAN_FRONTEND: "noninteractive" };
  const apt = (...args: string[]) => succeeds("apt-get", [...WAIT_FOR_APT, ...args], { env });
  const install = () =>
    ["chromium-headless-shell", "chromium"].some((name) =>
      apt("install", "-y", "-q", "--no-install-recommends", name),
    );
  log("no Chromium on PATH; installing it with `apt-get`");
  if (install()) return;
  if (apt("update", "-q") && install()) return;
  log(NO_CHROMIUM);
}
