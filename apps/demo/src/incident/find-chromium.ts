import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";

/** The names of Chromium, preferred first. The headless shell needs half of the CPU time. */
const NAMES = [
  "chromium-headless-shell",
  "chromium",
  "chromium-browser",
  "google-chrome",
  "google-chrome-stable",
];

/**
 * Arguments for every start. As root, Chromium cannot use its sandbox; the pages are trusted. `/dev/shm` may be too small in
 * containers. Software rendering is off to save CPU time.
 */
export const CHROMIUM_ARGS: readonly string[] = [
  "--no-sandbox",
  "--disable-dev-shm-usage",
  "--disable-gpu",
  "--disable-gpu-rasterization",
  "--disable-software-rasterizer",
];

export const NO_CHROMIUM =
  "no Chromium: `apt-get install chromium`, or set KONVERGE_TEST_CHROMIUM to the path of one";

/** By the PATH: a start of Chromium takes a second on a busy machine. */
const found = new Map<string, string | undefined>();

/** Returns the path of a Chromium: the configured one, else the first on PATH. */
export function findChromium(): string | undefined {
  const configured = process.env["KONVERGE_TEST_CHROMIUM"];
  if (configured !== undefined && configured !== "") return configured;
  const { PATH = "" } = process.env;
  if (!found.has(PATH)) {
    const folders = PATH.split(delimiter).filter((folder) => folder !== "");
    const paths = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
    found.set(PATH, paths.find(runs));
  }
  return found.get(PATH);
}

/** Starts the file once, because Ubuntu's package is a script that only points to a snap. */
function runs(path: string): boolean {
  return (
    existsSync(path) &&
    spawnSync(path, ["--version", "--no-sandbox"], { timeout: 90_000 }).status === 0
  );
}
