import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { ETCD_VERSION, KUBERNETES_VERSION } from "@konverge/infra-envtest";
import { KEDA_VERSION } from "../../infra/keda/find-keda-scaler.js";
import { KUBECTL_VERSION } from "../../infra/kubectl/find-kubectl.js";
import { COMMANDS } from "../../infra/setup/commands.js";

interface Manifest {
  readonly name: string;
  readonly scripts?: Record<string, string>;
  readonly dependencies?: Record<string, string>;
  readonly devDependencies?: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
  readonly overrides?: Record<string, string>;
}

const manifests = ["package.json", ...globSync("{apps,libs,infra}/*/package.json")];
const manifestOf = (file: string): Manifest => JSON.parse(readFileSync(file, "utf8"));
/** Siblings are linked, regardless of their version. */
const siblings = new Set(manifests.map((file) => manifestOf(file).name));
const requires = (program: string) => readFileSync(`infra/envtest/${program}/go.mod`, "utf8");

test.each(manifests)("%s pins every dependency exactly", (file) => {
  const { dependencies, devDependencies, optionalDependencies, overrides } = manifestOf(file);
  const loose = Object.entries({
    ...dependencies,
    ...devDependencies,
    ...optionalDependencies,
    ...overrides,
  })
    .filter(([name]) => !siblings.has(name))
    .filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version));
  expect(loose).toEqual([]);
});

test("the Go modules have the versions that the build reports", () => {
  expect(requires("kube-apiserver")).toContain(`k8s.io/kubernetes ${KUBERNETES_VERSION}\n`);
  expect(requires("etcd")).toContain(`go.etcd.io/etcd/server/v3 ${ETCD_VERSION}\n`);
  const staging = [...requires("kube-apiserver").matchAll(/=> k8s\.io\/\S+ (\S+)/g)].map(
    ([, version]) => version,
  );
  expect(new Set(staging)).toEqual(new Set([KUBERNETES_VERSION.replace("v1.", "v0.")]));
});

test("kubectl has the version of the control plane and of its Go module", () => {
  expect(KUBECTL_VERSION).toBe(KUBERNETES_VERSION);
  const module = readFileSync("infra/kubectl/program/go.mod", "utf8");
  expect(module).toContain(`k8s.io/kubectl ${KUBECTL_VERSION.replace("v1.", "v0.")}\n`);
});

test("the scalers of KEDA have the version of their Go module", () => {
  const module = readFileSync("infra/keda/scaler/go.mod", "utf8");
  expect(module).toContain(`github.com/kedacore/keda/v2 ${KEDA_VERSION}\n`);
});

test("every command of the set-up has its script", () => {
  const { scripts = {} } = manifestOf("package.json");
  for (const name of Object.keys(COMMANDS))
    // `exec`, or npm's SIGTERM would end the shell between them and leave the command running.
    expect(scripts[name]).toBe(`exec node infra/setup/main.js ${name}`);
});

test(".ci/run calls the test command in the README", () => {
  const [command = "missing"] =
    /\bnpm (?:run )?test\b/.exec(readFileSync("README.md", "utf8")) ?? [];
  const lines = readFileSync(".ci/run", "utf8").split("\n");
  const calls = lines.filter((line) => !line.startsWith("#") && line.trimEnd().endsWith(command));
  expect(calls).not.toEqual([]);
});
