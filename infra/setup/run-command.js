import { spawn } from "node:child_process";
import { constants } from "node:os";
import { delimiter, join } from "node:path";

const FORWARDED = /** @type {const} */ (["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"]);

/** Delay until the death of npm is noticed, in ms. */
const ORPHAN_POLL_MS = 500;

/**
 * Runs a file of the repository to its end as if it had been started directly: same terminal, signals passed on, its
 * exit code (128 + n for a death by signal n, as in shells).
 * @param {{ root: string, node: string, args: readonly string[] }} command `args`: the file first
 * @returns {Promise<number>} the exit code
 */
export async function runCommand({ root, node, args: [file = "", ...rest] }) {
  const bin = join(root, "node_modules", ".bin");
  const folders = (process.env.PATH ?? "").split(delimiter).filter((folder) => folder !== bin);
  const child = spawn(node, ["--conditions=@konverge/source", join(root, file), ...rest], {
    stdio: "inherit",
    env: {
      // Halves the start of every process of a command: TypeScript is stripped and compiled once.
      NODE_COMPILE_CACHE: join(root, "node_modules", ".cache", "konverge", "compiled"),
      ...process.env,
      PATH: [bin, ...folders].join(delimiter),
    },
  });
  const handlers = FORWARDED.map((signal) => {
    const forward = () => {
      // Ctrl-C at a terminal reaches the whole foreground group: a second copy would count as a second Ctrl-C.
      const fromTerminal = process.stdin.isTTY && signal !== "SIGTERM";
      if (!fromTerminal) child.kill(signal);
    };
    process.on(signal, forward);
    return () => process.off(signal, forward);
  });
  const stopWatching = endWithNpm(() => child.kill("SIGTERM"));
  try {
    return await new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("exit", (code, signal) => {
        resolve(code ?? 128 + (signal === null ? 0 : constants.signals[signal]));
      });
    });
  } finally {
    for (const off of handlers) off();
    stopWatching();
  }
}

/**
 * Calls `end` when npm dies: a killed npm ends no script, which would keep running unnoticed. Only under npm, because a
 * direct caller may leave it in the background on purpose.
 * @param {() => void} end @returns {() => void} stops watching
 */
function endWithNpm(end) {
  if (process.env.npm_lifecycle_event === undefined) return () => {};
  const parent = process.ppid;
  const timer = setInterval(() => {
    if (process.ppid === parent) return;
    clearInterval(timer);
    end();
  }, ORPHAN_POLL_MS);
  return () => clearInterval(timer);
}
