import { execFile, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { mkdtemp, mkdtempDisposable, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir, userInfo } from "node:os";
import { basename, delimiter, join, resolve } from "node:path";
import { createLocalGate, type ApiObject, type ResourceType } from "@konverge/core";
import { createKubeClient, ignoreNotFound, loadKubeCredentials } from "@konverge/kube";
import { createApiServer } from "@konverge/apiserver";
import { load } from "js-yaml";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { afterAll, beforeAll, expect, test } from "vitest";
import { findKubectl } from "../../infra/kubectl/find-kubectl.js";
import { KrewManifest } from "../support/krew-manifest.ts";
import { removePrefix } from "./remove-prefix.ts";
import { until } from "../support/until.ts";
import { isLongRun } from "../support/test-run.ts";

const root = resolve(import.meta.dirname, "../..");
const redisUrl = process.env["REDIS_URL"] ?? "";

/** Variables of the workspace and the runner to remove. Those of the registry stay. */
const OURS = /^(npm_(?!config_(registry|cache|cafile))|NODE_(OPTIONS|ENV|PATH)$|KONVERGE_|VITEST)/;

/** Returns the environment of a user's shell: only Node is shared with the workspace. */
const usersEnv = () => {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const theirs = folders.filter((path) => !path.endsWith("node_modules/.bin"));
  return {
    ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !OURS.test(name))),
    PATH: [resolve(process.execPath, ".."), ...theirs].join(delimiter),
    NO_COLOR: "1",
  };
};
const env = usersEnv();

/** The step of docs/workflows.md that the reader changes. */
const PUBLISH = /^ *await w\.step\("publish".*\n/m;

let folder = "";
/** A folder in which nothing but the packages is installed. */
let empty = "";
/** The tarballs. */
let packed: readonly string[] = [];

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

const end = (cwd: string, command: string, ...args: string[]): Promise<Ended> =>
  new Promise((done) => {
    const child = execFile(command, args, { cwd, env }, (_error, stdout, stderr) => {
      done({ code: child.exitCode ?? -1, stdout, stderr });
    });
  });

/** Runs a command and returns its stdout; fails with its output. */
async function run(cwd: string, command: string, ...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await end(cwd, command, ...args);
  expect(code, `${command} ${args.join(" ")}\n${stdout}${stderr}`).toBe(0);
  return stdout;
}

/** Returns the code blocks of a page in one language. */
function blocksOf(page: string, language: string): string[] {
  const text = readFileSync(join(root, "docs", page), "utf8");
  return [...text.matchAll(/```(\w+)\n(.*?)```/gs)].flatMap(([, found, block = ""]) =>
    found === language ? [block] : [],
  );
}

const [makeProject = ""] = blocksOf("first-controller.md", "sh");
const [pack = "", init = "", , installPackages = "", testProject = ""] = makeProject.split("\n");
const quiet = " --prefer-offline --no-audit --no-fund --loglevel=error";
const install = (cwd: string) =>
  run(
    cwd,
    "sh",
    "-c",
    installPackages.replace("../konverge/packages", join(folder, "packages")) + quiet,
  );

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "konverge-packages-"));
  const out = join(folder, "packages");
  const released = await run(root, "npm", "run", "release", "--", "--dry-run", "--out", out);
  packed = [...released.matchAll(/npm publish \S*\/(\S+\.tgz) --provenance/g)].map(
    ([, file = ""]) => join(out, file),
  );
  empty = join(folder, "empty");
  mkdirSync(empty);
  await install(empty);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const { version, homepage, bugs, keywords } = JSON.parse(
  readFileSync(join(root, "package.json"), "utf8"),
) as Record<string, unknown>;
/** Fields of every published manifest. */
const ofTheRelease = {
  version,
  homepage,
  bugs,
  keywords,
  description: expect.any(String) as unknown,
};

test("packages have resolvable exports, exact versions of siblings and no workspace files", async () => {
  expect(packed.map((file) => basename(file))).toContain(`konverge-kube-${String(version)}.tgz`);
  for (const file of packed) {
    const tarball = await readFile(file);
    const bytes = new Uint8Array(tarball).buffer;
    const { messages, pkg } = await publint({ pack: { tarball: bytes }, level: "warning" });
    expect(messages.map((message) => `${file}: ${formatMessage(message, pkg)}`)).toEqual([]);
    const files = (await run(folder, "tar", "tzf", file)).trim().split("\n");
    const ours = files.filter((path) => !path.startsWith("package/templates/"));
    expect(ours.filter((path) => /\.test\.|tsbuildinfo|node_modules/.test(path))).toEqual([]);
    expect(files).toEqual(expect.arrayContaining(["package/LICENSE", "package/README.md"]));
    if (pkg["name"] === "@konverge/dashboard") {
      const notices = "package/dist/public/assets/third-party-notices.txt";
      const text = await run(folder, "tar", "xzOf", file, notices);
      // Their scripts are in the bundle, without these texts.
      for (const bundled of ["preact", "@preact/signals", "uplot"]) {
        expect(text).toMatch(
          new RegExp(`^${bundled} \\d.*\\(MIT\\)\\n\\n(.*\\n)*?Permission is`, "m"),
        );
      }
    }
    const manifest = JSON.parse(await run(folder, "tar", "xzOf", file, "package/package.json")) as {
      readonly dependencies: Record<string, string>;
    };
    expect(manifest).toMatchObject(ofTheRelease);
    expect(Object.entries(manifest.dependencies).filter(([, range]) => range === "*")).toEqual([]);
    expect(JSON.stringify(manifest)).not.toMatch(/@konverge\/source|"private"|"scripts"/);
  }
});

test("a dry run of the release creates the tarballs with an SBOM, checksums and commands", async () => {
  // A published package never lacks one that it needs.
  const [cli, demo] = ["konverge", "konverge-demo"].map((name) =>
    packed.findIndex((file) => basename(file) === `${name}-${String(version)}.tgz`),
  );
  expect(demo).toBe(packed.length - 1);
  expect(cli).toBeGreaterThan(0);
  // To pack takes as long as the rest of the release; test/infra/pack.test.ts compares bytes in every run.
  expect(pack).toBe("npm run pack");
  if (isLongRun) {
    const again = join(folder, "packed-again");
    await run(root, "sh", "-c", `${pack} -- ${again}`);
    for (const file of packed.slice(0, (cli ?? 0) + 1)) {
      const [one, other] = [await readFile(file), await readFile(join(again, basename(file)))];
      expect(other.equals(one), file).toBe(true);
    }
  }
  const checked = await run(join(folder, "packages"), "sha256sum", "--check", "SHA256SUMS");
  expect(checked.trim().split("\n")).toHaveLength(packed.length + 3);
  for (const file of [
    `konverge-${String(version)}.cdx.json`,
    `kubectl-konverge-${String(version)}.tar.gz`,
    "konverge.yaml",
  ]) {
    expect(checked).toContain(`${file}: OK`);
  }
});

const [, tryPackages = "", installPlugin = ""] = blocksOf("releasing.md", "sh");

/** The folder of the unpacked plugin in the page. */
const UNPACKED = ".local/share/kubectl-konverge";

/** Installs the kubectl plugin as the page says, and returns the folder of its program. */
async function pluginIn(home: string): Promise<string> {
  symlinkSync(join(folder, "packages"), join(home, "release"));
  await run(home, "sh", "-ec", `HOME=${home}\n${installPlugin}`);
  return join(home, ".local/bin");
}

const readPlugin = () =>
  KrewManifest.parse(load(readFileSync(join(folder, "packages/konverge.yaml"), "utf8")));

test("the krew manifest follows krew's rules and has the checksum of the archive, which runs without npm", async () => {
  const { metadata, spec } = readPlugin();
  expect(metadata.name).toBe("konverge");
  expect(spec.version).toBe(`v${String(version)}`);
  const [{ uri, sha256, bin }] = spec.platforms;
  const archive = join(folder, "packages", basename(uri));
  expect(createHash("sha256").update(readFileSync(archive)).digest("hex")).toBe(sha256);
  // Krew unpacks only files and folders, and no path with "..".
  const entries = (await run(folder, "tar", "tvzf", archive)).trim().split("\n");
  expect(entries.filter((entry) => !/^[-d]/.test(entry) || entry.includes(".."))).toEqual([]);

  await using home = await mkdtempDisposable(join(tmpdir(), "konverge-plugin-"));
  const program = join(await pluginIn(home.path), "kubectl-konverge");
  expect(realpathSync(program)).toBe(join(realpathSync(home.path), UNPACKED, bin));
  expect(await run(home.path, program, "--version")).toBe(`${String(version)}\n`);
  expect(await run(home.path, program, "explain", "object", "--help")).toMatch(
    /^Usage: kubectl konverge explain object .*^ {2}kubectl konverge explain object/ms,
  );
  const demo = await end(home.path, program, "demo", "--exit");
  expect(demo.stderr).toBe(
    `konverge: the demo is not installed; run \`npm install @konverge/demo@${String(version)}\` and repeat the command\n`,
  );
  expect(demo.code).toBe(3);
});

test("kubectl runs the plugin", async ({ skip }) => {
  const kubectl = await findKubectl({ build: isLongRun });
  if ("missing" in kubectl) return skip(kubectl.missing);
  await using home = await mkdtempDisposable(join(tmpdir(), "konverge-plugin-"));
  const plugins = await pluginIn(home.path);
  const call = (args: string) =>
    run(home.path, "sh", "-c", `PATH="$1:$PATH"; "$0" ${args}`, kubectl.path, plugins);
  expect(await call("konverge --help")).toMatch(/^Usage: kubectl konverge \[options\] \[command\]/);
  expect(await call("konverge --version")).toBe(`${String(version)}\n`);
  expect(await call("plugin list")).toContain(join(plugins, "kubectl-konverge"));
});

test("the demo runs from the packages, with a Redis of its own", async () => {
  const [, installReleased = "", demo = ""] = tryPackages.trim().split("\n");
  expect(installReleased.replace("release/", "packages/")).toBe(installPackages);
  // A whole demo takes as long as three other tests; a short run only loads it.
  if (!isLongRun) {
    expect(await run(empty, "sh", "-c", `${demo} --help`)).toMatch(/^Usage: konverge demo/);
    return;
  }
  const script = `unset REDIS_URL; ${demo} --exit -o json`;
  const { acts } = JSON.parse(await run(empty, "sh", "-c", script)) as {
    readonly acts: readonly { readonly name: string; readonly converged: boolean }[];
  };
  expect(acts.map(({ name }) => name)).toEqual(["naive", "lazy", "konverge"]);
  expect(acts.at(-1)).toMatchObject({ converged: true, lostUpdates: 0 });
});

test("installs in an empty folder, creates a project, checks and tests it, and reconciles an object", async () => {
  await using cleanup = new AsyncDisposableStack();
  const konverge = join(empty, "node_modules/.bin/konverge");
  await run(empty, "sh", "-c", init.replace("../my-operator", "my-operator"));
  const project = join(empty, "my-operator");
  expect((await readdir(project)).toSorted()).toEqual([
    ".dockerignore",
    ".gitignore",
    "Dockerfile",
    "README.md",
    "greeting.yaml",
    "konverge.config.ts",
    "package.json",
    "src",
    "tsconfig.json",
  ]);
  expect(await readdir(join(project, "src"))).toContain("greeter.test.ts");
  const again = await end(empty, konverge, "init", "my-operator");
  expect(again.stderr).toMatch(/my-operator is not empty .*; use a directory that does not exist/);
  expect(again.code).toBe(2);

  // Outside the first folder, so that modules do not resolve by accident. npm finds what it has unpacked there, because
  // to unpack everything again would take as long as the rest of this test.
  const own = join(folder, "my-operator");
  renameSync(project, own);
  renameSync(join(empty, "node_modules"), join(own, "node_modules"));
  symlinkSync(join(own, "node_modules"), join(empty, "node_modules"));
  await install(own);
  await run(own, "npm", "run", "check");
  expect(await run(own, "sh", "-c", testProject)).toMatch(/pass 3/);

  // The Dockerfile's steps without a container engine: `npm ci` must accept the lock file. A dry run compares it with
  // the manifest; the install above has unpacked the same packages.
  const image = join(folder, "image");
  mkdirSync(image);
  const steps = readFileSync(join(own, "Dockerfile"), "utf8");
  const [, copied = ""] = /^COPY (.*) \.\/\nRUN npm ci --omit=dev$/m.exec(steps) ?? [];
  for (const file of copied.split(" ")) copyFileSync(join(own, file), join(image, file));
  await run(image, "sh", "-c", `npm ci --omit=dev --dry-run${quiet}`);

  // The pages show the project's own files and further ones next to them.
  const shown = ["src/greeting.ts", "src/greeter.ts", "konverge.config.ts"];
  expect(blocksOf("first-controller.md", "ts")).toEqual(
    shown.map((file) => readFileSync(join(own, file), "utf8")),
  );
  const [testing = ""] = blocksOf("testing.md", "ts");
  writeFileSync(join(own, "src/page.test.ts"), testing);
  expect(await run(own, "node", "--test", "src/page.test.ts")).toMatch(/pass 2/);
  for (const [index, block] of blocksOf("resources.md", "ts").entries()) {
    writeFileSync(join(own, `src/page-${index}.ts`), block);
    await run(own, "node", `src/page-${index}.ts`);
  }
  const [release = "", releaseConfig = "", changedStep = ""] = blocksOf("workflows.md", "ts");
  writeFileSync(join(own, "src/release.ts"), release);
  writeFileSync(join(own, "src/changed-release.ts"), release.replace(PUBLISH, changedStep));
  writeFileSync(join(own, "src/release.config.ts"), releaseConfig);
  await run(own, "npm", "run", "check");

  const server = await createApiServer();
  cleanup.defer(() => server.close());
  const kubeconfig = join(folder, "kubeconfig");
  writeFileSync(kubeconfig, server.kubeconfig);
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigText: server.kubeconfig }),
    gate: createLocalGate({ ratePerSecond: 1_000, burst: 1_000 }),
    userAgent: "konverge-test/1",
  });
  cleanup.defer(() => client.close());
  const prefix = `packages-${process.pid}`;
  cleanup.defer(() => removePrefix(redisUrl, prefix));
  const settings = {
    KUBECONFIG: kubeconfig,
    KONVERGE_REDIS_URL: redisUrl,
    KONVERGE_PREFIX: prefix,
    KONVERGE_METRICS_PORT: "0",
  };
  Object.assign(env, settings);
  const cluster = ["--config", "konverge.config.ts", "--image", "registry.example/my-operator:1"];
  const manifests = await run(own, "node_modules/.bin/konverge", "manifests", ...cluster);
  expect(manifests).toMatch(/kind: Deployment.*- --config\n +- konverge\.config\.ts\n/s);
  await run(own, "npm", "run", "crds", "--", "--apply");
  const worker = spawn("node_modules/.bin/konverge", ["worker", "--config", "konverge.config.ts"], {
    cwd: own,
    env,
    stdio: ["ignore", "pipe", "pipe"],
  });
  cleanup.defer(() => void worker.kill("SIGKILL"));
  const ended = new Promise<number | null>((done) => worker.once("close", done));
  let said = "";
  for (const stream of [worker.stdout, worker.stderr]) {
    stream.on("data", (chunk: Buffer) => (said += chunk.toString()));
  }
  const greetings: ResourceType<ApiObject & { spec: object; status?: { text?: string } }> = {
    group: "example.com",
    version: "v1",
    kind: "Greeting",
    resource: "greetings",
    scope: "Namespaced",
  };
  const name = { namespace: "default", name: "world" };
  const written = load(readFileSync(join(own, "greeting.yaml"), "utf8")) as ApiObject;
  await client.create(greetings, { ...written, metadata: name });
  await until("the greeting is reconciled", async () => {
    if (worker.exitCode !== null) throw new Error(said);
    return (await client.get(greetings, name)).status?.text === "Hello, World!";
  });
  worker.kill("SIGTERM");
  expect(await ended, said).toBe(0);
});

test("docs/from-kubebuilder.md: the ported tutorial passes its checks and its test", async () => {
  const [clean = "", checks = ""] = blocksOf("from-kubebuilder.md", "sh");
  const [code = "", config = "", tests = ""] = blocksOf("from-kubebuilder.md", "ts");
  const project = join(folder, "memcached-operator");
  await run(empty, "sh", "-c", init.replace("../my-operator", project));
  symlinkSync(join(empty, "node_modules"), join(project, "node_modules"));
  await run(project, "sh", "-ec", clean);
  expect(await readdir(join(project, "src"))).toEqual([]);
  writeFileSync(join(project, "src/memcached.ts"), code);
  writeFileSync(join(project, "konverge.config.ts"), config);
  writeFileSync(join(project, "src/memcached.test.ts"), tests);
  // The blocks of the other guides that need no declarations of the reader.
  for (const [page, numbers] of [
    ["from-kopf.md", [0]],
    ["from-client-node.md", [0, 1, 2]],
  ] as const) {
    const blocks = blocksOf(page, "ts");
    for (const number of numbers) {
      const file = join(project, `src/${page.replace(".md", "")}-${number}.ts`);
      writeFileSync(file, blocks[number] ?? "");
    }
  }
  const [check = "", ownTests = "", dev] = checks.trim().split("\n");
  expect(dev).toBe("npm run dev");
  await run(project, "sh", "-ec", check);
  expect(await run(project, "sh", "-ec", ownTests)).toMatch(/pass 1/);
  const crds = await run(project, "npm", "run", "crds");
  expect(crds).toContain("name: memcacheds.cache.example.com");
});

test("docs/bring-your-code.md: a project for a kind of another project passes its test and runs", async () => {
  await using cleanup = new AsyncDisposableStack();
  const [, , create = ""] = blocksOf("bring-your-code.md", "sh");
  const [initialize = "", , installMore, check = "", ownTest = "", dev = ""] = create.split("\n");
  expect(installMore).toBe(installPackages);
  const published = join(root, "test/integration/kube/published-crds/cert-manager.yaml");
  copyFileSync(published, join(empty, "cert-manager.crds.yaml"));
  await run(empty, "sh", "-ec", initialize);
  const project = join(folder, "certificate-operator");
  symlinkSync(join(empty, "node_modules"), join(project, "node_modules"));
  await run(project, "sh", "-ec", check);
  expect(await run(project, "sh", "-ec", ownTest)).toMatch(/pass 2/);
  const before = readFileSync(join(project, "src/certificate.ts"), "utf8");
  await run(project, "npm", "run", "types");
  expect(readFileSync(join(project, "src/certificate.ts"), "utf8")).toBe(before);

  const stack = spawn("sh", ["-c", dev], {
    cwd: project,
    env: { ...usersEnv(), KONVERGE_API_PORT: "0" },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const closed = new Promise((done) => stack.once("close", done));
  cleanup.defer(async () => {
    if (stack.exitCode === null) process.kill(-(stack.pid ?? 0), "SIGTERM");
    await closed;
  });
  let printed = "";
  for (const stream of [stack.stdout, stack.stderr]) {
    stream.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  }
  const [, kubeconfig = ""] = await until("the worker is ready", () => {
    if (stack.exitCode !== null) throw new Error(printed);
    const found = /export KUBECONFIG=(\S+)/.exec(printed);
    return printed.includes("worker ready") && found !== null && found;
  });
  const client = createKubeClient({
    credentials: loadKubeCredentials({ kubeconfigPath: kubeconfig }),
    gate: createLocalGate({ ratePerSecond: 1_000, burst: 1_000 }),
    userAgent: "konverge-test/1",
  });
  cleanup.defer(() => client.close());
  const example = load(readFileSync(join(project, "certificate.yaml"), "utf8")) as ApiObject;
  const certificates = await client.resolveType(example.apiVersion, example.kind);
  example.metadata.namespace = "default";
  await client.create(certificates, example);
  const configMaps = await client.resolveType("v1", "ConfigMap");
  const name = { namespace: "default", name: "example-certificate" };
  const written = await until("the ConfigMap is written", () =>
    client.get(configMaps, name).catch(ignoreNotFound),
  );
  expect(written).toMatchObject({ data: { generation: "1" } });
});

/** Replaces what differs between two executions of the same commands. */
function withoutVariables(text: string): string {
  const pids = new Map<string, number>();
  return text
    .replaceAll(/\d{4}-\S+Z/g, "TIME")
    .replaceAll(/(?<="pid":)\d+/g, (pid) => {
      if (!pids.has(pid)) pids.set(pid, pids.size + 1);
      return String(pids.get(pid));
    })
    .replaceAll(/\b\d+(?:ms|s|m)\b/g, "AGO")
    .replaceAll(/ +/g, " ");
}

test("docs/workflows.md: a run survives the kill of its worker, and continues with changed code", async () => {
  await using cleanup = new AsyncDisposableStack();
  const [
    create = "",
    dev = "",
    start = "",
    kill = "",
    touch = "",
    logs = "",
    get = "",
    approve = "",
  ] = blocksOf("workflows.md", "sh");
  const [release = "", config = "", changedStep = ""] = blocksOf("workflows.md", "ts");
  const [begun = "", continued = "", ended = ""] = blocksOf("workflows.md", "text");

  const [packAgain, makeFolder = "", initialize = "", installMore] = create.split("\n");
  expect([packAgain, installMore]).toEqual([pack, `${installPackages} zod`]);
  await run(empty, "sh", "-ec", `${makeFolder}\n${initialize}`);
  const project = join(folder, "first-workflow");
  symlinkSync(join(empty, "node_modules"), join(project, "node_modules"));
  // The test decides when the long step ends, so the worker is always killed in it.
  const gate = join(folder, "tested");
  const file = join(project, "release.ts");
  const waitForGate = `while (!existsSync(${JSON.stringify(gate)})) await setTimeout(50);`;
  writeFileSync(
    file,
    `import { existsSync } from "node:fs";\n${release.replace("await setTimeout(30_000);", waitForGate)}`,
  );
  writeFileSync(join(project, "konverge.config.ts"), config);

  const stack = spawn("sh", ["-c", dev], {
    cwd: project,
    env: { ...usersEnv(), KONVERGE_API_PORT: "0" },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const closed = new Promise((done) => stack.once("close", done));
  cleanup.defer(async () => {
    if (stack.exitCode === null) process.kill(-(stack.pid ?? 0), "SIGTERM");
    await closed;
  });
  let printed = "";
  for (const stream of [stack.stdout, stack.stderr]) {
    stream.on("data", (chunk: Buffer) => (printed += chunk.toString()));
  }
  const prints = (pattern: RegExp) =>
    until(`the stack prints ${String(pattern)}`, () => {
      if (stack.exitCode !== null) throw new Error(printed);
      return pattern.exec(printed) ?? undefined;
    });
  const [exported] = await prints(/export KUBECONFIG=\S+ KONVERGE_SERVER=\S+/);
  await prints(/worker ready/);
  const type = (script: string) => run(project, "sh", "-ec", `${exported}\n${script}`);
  const logsUntil = async (what: string, lines: number) => {
    // The worker prints it first. Each look starts npm and the command line.
    await prints(/testing web:1\.4\.0/);
    return await until(what, async () => {
      const text = await type(logs);
      return text.trim().split("\n").length === lines && text;
    });
  };

  expect(await type(start)).toMatch(/^release\/default\/r1$/m);
  const first = await logsUntil("the second step is at work", 3);
  expect(withoutVariables(first)).toBe(withoutVariables(begun));
  const [, pid = ""] = /testing .*"pid":(\d+)/.exec(first) ?? [];
  printed = "";
  await type(kill.replace("4777", pid));
  await prints(/worker ended with SIGKILL; save a file to start it again/);
  await type(touch);
  const second = await logsUntil("another worker continues", 4);
  expect(withoutVariables(second)).toBe(withoutVariables(continued));

  writeFileSync(gate, "");
  await until("the run waits", async () =>
    (await type(get)).includes('waits for signal "approve"'),
  );
  printed = "";
  const code = readFileSync(file, "utf8");
  writeFileSync(file, code.replace(PUBLISH, changedStep));
  await prints(/release\.ts changed[\s\S]*worker ready/);
  const shown = withoutVariables(await type(approve)).split("\n");
  const { username } = userInfo();
  for (const line of withoutVariables(ended).replaceAll("root", username).split("\n")) {
    expect(shown).toContain(line);
  }
  expect(await type(logs)).toContain('publishing web:1.4.0 {"by":"ann"}');
});
