import { KonvergeError, sleepMs } from "@konverge/core";
import { embeddedApiServer, startLocalStack } from "@konverge/local-stack";
import { isolatedEnv } from "../stage/isolated-env.ts";
import { createProgress } from "../stage/progress.ts";
import { CLI_SCRIPT } from "../stage/scripts.ts";
import { addressLine, stayUp, untilInterrupted } from "../stage/stay-up.ts";
import { playIncident, playOutage, randomToken, type IncidentOptions } from "./play-incident.ts";

export interface RunIncidentOptions {
  readonly exit: boolean;
  readonly output: "table" | "json";
  readonly logs: string | undefined;
  /** Number of objects without a problem. */
  readonly objects: number;
  readonly reduced: boolean;
  /** Whether the API server is frozen at the end. */
  readonly outage: boolean;
  /** Folder for pictures of every view. */
  readonly screenshots: string | undefined;
  /** Folder for the pictures of the docs. */
  readonly docImages: string | undefined;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

/** Plays the incident and returns the exit code: 0 if all its causes were reported. */
export async function runIncident(options: RunIncidentOptions): Promise<number> {
  const { signal, logs } = options;
  const progress = createProgress(process.stderr);
  const { print } = progress;
  const token = randomToken();
  return await untilInterrupted({ signal, progress }, async () => {
    await using stack = await startLocalStack({
      name: "demo",
      cli: CLI_SCRIPT,
      startApiServer: embeddedApiServer({ latencyMs: 2 }),
      env: { ...isolatedEnv(), KONVERGE_TOKEN: token },
      logs,
      log: print,
      apiPort: 0,
    });
    await using cleanup = new AsyncDisposableStack();
    print(addressLine(`${stack.apiUrl}/`, options));
    print(`token: ${token}`);
    const playing = { ...options, stack, token, progress, cleanup };
    await playIncident(playing);
    await photograph(playing, "incident");
    if (options.outage) {
      await playOutage(playing);
      await photograph(playing, "outage");
    }
    progress.end();
    if (options.output === "json") {
      const { apiUrl: server, redis, installation: prefix, apiServer } = stack;
      const apiServerPid = apiServer.pid;
      const document = { scenario: "incident", server, token, redis, prefix, apiServerPid };
      process.stdout.write(`${JSON.stringify(document)}\n`);
    }
    if (options.exit) print("the incident was reported");
    else await stayUp(`${stack.apiUrl}/`, { signal, print });
    return 0;
  });
}

/** A chart of fewer minutes shows no course. */
const CHARTED_MS = 240_000;

async function photograph(
  playing: IncidentOptions & RunIncidentOptions,
  part: "incident" | "outage",
) {
  const { screenshots, docImages, stack, token, progress, reduced, signal } = playing;
  if (screenshots === undefined && docImages === undefined) return;
  if (part === "incident" && !reduced) {
    progress.begin("some minutes for the charts");
    await sleepMs(CHARTED_MS, signal);
  }
  progress.begin(`pictures of the ${part}`);
  const { takePictures } = await loadPictures();
  const onPicture = progress.update;
  await takePictures({
    server: stack.apiUrl,
    token,
    part,
    screenshots,
    docImages,
    onPicture,
    signal,
  });
}

/** Loads the browser, which few users install. @throws KonvergeError `invalid_config` if it is not installed */
async function loadPictures() {
  try {
    return await import("./take-pictures.ts");
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ERR_MODULE_NOT_FOUND") throw cause;
    throw new KonvergeError(
      "invalid_config",
      "pictures need playwright-core; run `npm install playwright-core` and repeat the command",
      { cause },
    );
  }
}
