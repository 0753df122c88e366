import { readFileSync } from "node:fs";
import { join } from "node:path";
import { load, loadAll } from "js-yaml";
import type { JsonObject } from "@konverge/core";
import { findGoProgram } from "../../../infra/host/go-program.js";
import { findPythonPackages } from "../../../infra/host/python-packages.js";
import { FILES } from "./kubectl-manifests.ts";

interface FindOptions {
  readonly log: (line: string) => void;
  /** Builds or installs the programs if necessary. */
  readonly build: boolean;
}

/** A CustomResourceDefinition of a file. */
export type Definition = JsonObject & {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly group: string;
    readonly names: { readonly plural: string };
    readonly versions: readonly { readonly name: string }[];
  };
};

/** A program of another project's clients, which runs one scenario per call and prints what it sees. */
export interface ForeignPrograms {
  readonly name: string;
  /** In the order of the output, each with whether only long tests run it. */
  readonly scenarios: Readonly<Record<string, "always" | "long">>;
  /** The CRDs that the programs use. */
  readonly crds: readonly Definition[];
  /** The words before the name of a scenario. */
  find(options: FindOptions): Promise<{ readonly command: readonly string[] } | Missing>;
}

interface Missing {
  /** Why there is no program. */
  readonly missing: string;
}

const folderOf = (name: string) => join(import.meta.dirname, name);
const parts = load(FILES["parts-crd.yaml"] ?? "") as Definition;

/** client-go and controller-runtime: a build of a minute or two, once. */
const go: ForeignPrograms = {
  name: "Go programs",
  crds: [parts],
  scenarios: {
    informers: "always",
    clients: "always",
    patches: "always",
    applying: "always",
    subresource: "always",
    eviction: "always",
    watches: "always",
    election: "always",
    events: "always",
    controller: "always",
  },
  async find(options) {
    const found = await findGoProgram(
      { name: "go-programs", folder: folderOf("go-programs") },
      options,
    );
    return "missing" in found ? found : { command: [found.path] };
  },
};

/** Operators with kopf, and the kubernetes package of Python: an installation of half a minute, once. */
const python: ForeignPrograms = {
  name: "Python programs",
  get crds() {
    const text = readFileSync(join(folderOf("python-programs"), "crds.yaml"), "utf8");
    return loadAll(text) as Definition[];
  },
  scenarios: {
    "kopf-tutorial": "always",
    "kopf-handlers": "long",
    "kopf-peering": "long",
    informer: "always",
    election: "long",
  },
  async find(options) {
    const folder = folderOf("python-programs");
    const requirements = join(folder, "requirements.txt");
    const found = await findPythonPackages({ name: "python-programs", requirements }, options);
    // Without the cache of Python, which would be in the repository.
    return "missing" in found ? found : { command: [found.path, "-B", join(folder, "main.py")] };
  },
};

/** client-node, in a process of its own as any program of it. */
const node: ForeignPrograms = {
  name: "client-node programs",
  crds: [parts],
  scenarios: {
    informer: "always",
    watches: "always",
    election: "always",
    custom: "always",
    objects: "always",
    typed: "always",
    start: "always",
    // Random calls, with the seed.
    "random-1": "always",
    "random-2": "long",
    "random-3": "long",
  },
  find() {
    const main = join(folderOf("node-programs"), "main.ts");
    return Promise.resolve({
      command: [process.execPath, "--conditions=@konverge/source", main],
    });
  },
};

export const FOREIGN_PROGRAMS: readonly ForeignPrograms[] = [go, python, node];
