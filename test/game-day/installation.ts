import { execFile, spawn } from "node:child_process";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { alertGroups, type AlertGroup } from "../../apps/cli/src/manifests/alert-rules.ts";
import { follow, type DeployedProcess } from "../e2e/deployed-worker.ts";
import { Service } from "../support/service.ts";

/** A worker or an API process, started by the CLI. */
export interface Running {
  readonly name: string;
  /** The address of its HTTP server. */
  readonly url: string;
  readonly lines: readonly string[];
  /** Sends SIGTERM and waits for its exit. */
  stop(): Promise<void>;
  /** Sends SIGKILL and waits for its exit. */
  kill(): Promise<void>;
}

export interface InstallationOptions {
  readonly name: string;
  readonly redisUrl: string;
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly folder: string;
  /** Additional settings of all processes. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface StartOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** The command line of the CLI, for another version. Default: the sources. */
  readonly cli?: readonly string[];
  /** The configuration of another version's workers. */
  readonly config?: string;
  /** Arguments of Node before the CLI, such as a preloaded module. */
  readonly nodeArgs?: readonly string[];
}

const SOURCES = ["--conditions=@konverge/source", "apps/cli/src/main.ts"];
export const CONFIG = "test/game-day/game.config.ts";

/** Workers and API processes with one prefix, and the Service in front of the API. */
export class Installation implements AsyncDisposable {
  readonly #options: InstallationOptions;
  readonly workers = new Set<Running>();
  readonly apis = new Set<Running>();
  readonly service = new Service();
  readonly journalPath: string;
  readonly alertGroups: readonly AlertGroup[];
  #started = 0;

  constructor(options: InstallationOptions) {
    this.#options = options;
    this.journalPath = join(options.folder, `${options.name}.journal`);
    appendFileSync(this.journalPath, "");
    this.alertGroups = alertGroups({
      installation: options.name,
      clusters: ["default"],
      runbooks: "runbooks",
    });
  }

  get name(): string {
    return this.#options.name;
  }

  get namespace(): string {
    return this.#options.namespace;
  }

  /** The effects of handlers and steps so far, oldest first. */
  journal(): string[] {
    return readFileSync(this.journalPath, "utf8").trimEnd().split("\n");
  }

  /** Starts a worker and waits until it is ready. */
  async startWorker(options: StartOptions = {}): Promise<Running> {
    return await this.#start("worker", ["worker", "--config", options.config ?? CONFIG], options);
  }

  /** Starts an API process and waits until the Service sends calls to it. */
  async startApi(options: StartOptions = {}): Promise<Running> {
    const api = await this.#start("api", ["api"], options);
    this.service.add(api.url);
    while (!this.service.isReady(api.url)) await this.service.probe();
    return api;
  }

  /** Runs a command of the CLI with access to Redis. @throws Error with its output if it fails */
  async command(...args: readonly string[]): Promise<string> {
    const { stdout } = await promisify(execFile)(process.execPath, [...SOURCES, ...args], {
      env: this.environment(),
    });
    return stdout;
  }

  async #start(
    kind: "worker" | "api",
    args: readonly string[],
    { env = {}, cli = SOURCES, nodeArgs = [] }: StartOptions,
  ): Promise<Running> {
    this.#started += 1;
    const name = `${this.name}-${kind}-${this.#started}`;
    const child = spawn(process.execPath, [...nodeArgs, ...cli, ...args], {
      env: { ...this.environment(), GAME_DAY_JOURNAL: this.journalPath, ...env },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const followed = follow(child);
    const set = kind === "worker" ? this.workers : this.apis;
    const ended = () => void set.delete(running);
    const running: Running = {
      name,
      url: await addressOf(kind, followed),
      lines: followed.lines,
      async stop() {
        await followed.stop();
        ended();
      },
      async kill() {
        child.kill("SIGKILL");
        await followed.exitCode;
        ended();
      },
    };
    void followed.exitCode.then(ended);
    set.add(running);
    return running;
  }

  /** The settings of its processes and of the CLI. */
  environment(): Record<string, string> {
    const { name, redisUrl, kubeconfig, namespace, env } = this.#options;
    const { PATH = "", HOME = "", NODE_COMPILE_CACHE = "" } = process.env;
    return {
      PATH,
      HOME,
      NODE_COMPILE_CACHE,
      KONVERGE_REDIS_URL: redisUrl,
      KONVERGE_PREFIX: name,
      KONVERGE_KUBECONFIG: kubeconfig,
      KONVERGE_METRICS_PORT: "0",
      KONVERGE_API_PORT: "0",
      KONVERGE_LEASE_DURATION: "4s",
      KONVERGE_RUN_SWEEP: "1s",
      GAME_DAY_NAMESPACE: namespace,
      ...env,
    };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.service.close();
    await Promise.all([...this.workers, ...this.apis].map((one) => one.kill()));
  }
}

async function addressOf(kind: "worker" | "api", followed: DeployedProcess): Promise<string> {
  if (kind === "api") return String((await followed.said("api listening"))["url"]);
  const { metricsUrl } = await followed.said("worker ready");
  return new URL(String(metricsUrl)).origin;
}
