import { spawn } from "node:child_process";
import { globSync, readFileSync, rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { RolloutDocument } from "../start-demo.ts";

/** A request as the API server logged it (audit.k8s.io/v1). */
export interface LoggedRequest {
  readonly verb: string;
  readonly userAgent: string;
  readonly objectRef?: {
    readonly resource?: string;
    readonly namespace?: string;
    readonly name?: string;
    readonly subresource?: string;
  };
  readonly responseStatus?: { readonly code?: number };
  readonly stageTimestamp: string;
}

/** The demo after its scenario, still running. */
export interface DemoStage {
  readonly apiUrl: string;
  readonly acts: readonly { readonly lostUpdates: number }[];
  readLog(): readonly LoggedRequest[];
  /** Interrupts it and resolves to its exit code. */
  stop(): Promise<number | null>;
}

/** Runs the lazy act beside a writer that overwrites unread changes, and keeps the demo running. */
export async function startDemoStage(): Promise<DemoStage> {
  const options = ["--acts", "lazy", "--blind-writer"];
  const demo = await startDemo(options, /most contended object: (\S+)/);
  const { acts } = JSON.parse(demo.document()) as Pick<DemoStage, "acts">;
  return { ...demo, acts, apiUrl: demo.page.origin };
}

/** The rollout scenario of the demo, still running. */
export interface RolloutStage extends RolloutDocument {
  /** The page of its run. */
  readonly page: URL;
  /** Interrupts it and resolves to its exit code. */
  stop(): Promise<number | null>;
}

export async function startRolloutStage(): Promise<RolloutStage> {
  const demo = await startDemo(["--scenario", "rollout"], /still running: open (\S+);/);
  return { ...demo, ...(JSON.parse(demo.document()) as RolloutDocument) };
}

/** The reduced incident before its outage, still running. */
export interface IncidentStage {
  readonly server: string;
  readonly token: string;
  readonly apiServerPid: number;
  stop(): Promise<void>;
}

/** Plays the reduced incident without its outage, and takes the pictures of the docs that show this part. */
export async function startIncidentStage(images?: string): Promise<IncidentStage> {
  const scenario = ["--scenario", "incident", "--reduced", "--objects", "40", "--no-outage"];
  const pictures = images === undefined ? [] : ["--doc-images", images];
  const demo = await startDemo([...scenario, ...pictures], /still running: open (\S+);/);
  const stage = JSON.parse(demo.document()) as Omit<IncidentStage, "stop">;
  return { ...stage, stop: async () => void (await demo.stop()) };
}

/** Longer than any scenario on a busy machine, shorter than the timeout of a test, so that a failure includes the demo's output. */
const SCENARIO_MS = 600_000;

interface RunningDemo {
  readonly page: URL;
  /** Its standard output so far. */
  document(): string;
  readLog(): readonly LoggedRequest[];
  /** Interrupts it and resolves to its exit code. */
  stop(): Promise<number | null>;
}

async function startDemo(scenario: readonly string[], endsWith: RegExp): Promise<RunningDemo> {
  const folder = await mkdtemp(join(tmpdir(), "konverge-dashboard-"));
  const args = ["--conditions=@konverge/source", "apps/demo/src/main.ts", "--no-exit", ...scenario];
  const child = spawn(process.execPath, [...args, "-o", "json"], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, TMPDIR: folder },
  });
  let stdout = "";
  child.stdout.on("data", (chunk: Buffer) => {
    stdout += String(chunk);
  });
  const lines: string[] = [];
  const exited = new Promise<number | null>((resolve) => {
    child.once("exit", (code) => resolve(code));
  });
  const page = await new Promise<string>((resolve, reject) => {
    const overdue = setTimeout(() => {
      child.kill("SIGINT");
      reject(new Error(`the demo did not print ${String(endsWith)}\n${lines.join("\n")}`));
    }, SCENARIO_MS);
    createInterface({ input: child.stderr }).on("line", (line) => {
      lines.push(line);
      const [, url] = endsWith.exec(line) ?? [];
      if (url === undefined) return;
      clearTimeout(overdue);
      resolve(url);
    });
    child.once("exit", () => {
      clearTimeout(overdue);
      rmSync(folder, { recursive: true, force: true });
      reject(new Error(`the demo ended early\n${lines.join("\n")}`));
    });
  });
  return {
    page: new URL(page),
    document: () => stdout,
    readLog() {
      const [path = ""] = globSync("konverge-demo-*/audit.log", { cwd: folder });
      return readFileSync(join(folder, path), "utf8")
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as LoggedRequest);
    },
    async stop() {
      child.kill("SIGINT");
      return await exited;
    },
  };
}
