import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { JsonObject } from "@konverge/core";

/** One field of a Go struct that is sent as JSON and as protobuf. */
interface GoField {
  /** Name in JSON; empty for a struct whose members are those of the outer struct. */
  readonly name: string;
  readonly type: string;
  /** Go omits it if it is unset. */
  readonly isOmitted: boolean;
  /** Number in protobuf; undefined for a field that protobuf does not have. */
  readonly number: string | undefined;
}

const FIELD = /^\t(?:\w+\s+)?(\S+)\s+`json:"([^"]*)"(?:.*\sprotobuf:"([^"]*)")?/;
const SCALAR = /^\*(string|bool|int32|int64|float64|[A-Z]\w*|(metav1|v1|intstr|resource)\.\w+)$/;
/** `omitempty` has no effect on a struct. */
const TIME = /^(metav1\.|v1\.)?(Micro)?Time$/;
const WORKSPACE = fileURLToPath(new URL("../../infra/envtest/kube-apiserver/", import.meta.url));

/** Reads the structs of Kubernetes' Go modules, by the names of the definitions in OpenAPI. */
export class GoStructs {
  readonly #structs = new Map<string, readonly GoField[]>();
  readonly #folders = new Set<string>();
  readonly #modules = new Map<string, string>();

  /** Returns the numbers of a struct's fields in protobuf; a `*` marks a scalar that may be set to its zero value. */
  numbersOf(definition: string): JsonObject | undefined {
    const fields = this.#find(definition);
    if (fields === undefined) return undefined;
    const numbers: JsonObject = {};
    for (const { name, type, number } of fields) {
      if (number === undefined) continue;
      const inner = name === "" ? this.numbersOf(besides(definition, type)) : undefined;
      numbers[number] = inner ?? (this.#isScalarPointer(definition, type) ? `*${name}` : name);
    }
    return numbers;
  }

  /** Returns the members that Go writes as null if they are unset. */
  nullsOf(definition: string): string[] {
    return (this.#find(definition) ?? []).flatMap(({ name, type, isOmitted }) => {
      if (name === "") return this.nullsOf(besides(definition, type));
      const isNull = TIME.test(type) || /^(\[\]|map\[|\*)/.test(type);
      return isNull && !isOmitted ? [name] : [];
    });
  }

  #isScalarPointer(definition: string, type: string): boolean {
    if (!SCALAR.test(type)) return false;
    // A pointer to a struct is a message, which is present or absent by itself.
    return this.#find(besides(definition, type.slice(1))) === undefined;
  }

  #find(definition: string): readonly GoField[] | undefined {
    const [group = "", version = ""] = definition.split(".");
    const folder = this.#folderOf(group, version);
    if (folder === undefined) return undefined;
    if (!this.#folders.has(folder)) this.#read(folder, `${group}.${version}`);
    return this.#structs.get(definition);
  }

  #folderOf(group: string, version: string): string | undefined {
    if (!/^v\d/.test(version)) return undefined;
    if (group === "meta")
      return join(this.#module("k8s.io/apimachinery"), "pkg/apis/meta", version);
    if (group === "apiextensions") {
      const module = this.#module("k8s.io/apiextensions-apiserver");
      return join(module, "pkg/apis/apiextensions", version);
    }
    return join(this.#module("k8s.io/api"), group, version);
  }

  #module(path: string): string {
    const known = this.#modules.get(path);
    if (known !== undefined) return known;
    const args = ["list", "-mod=mod", "-m", "-f", "{{.Dir}}", path];
    const env = { ...process.env, GOFLAGS: "" };
    const folder = execFileSync("go", args, { cwd: WORKSPACE, encoding: "utf8", env }).trim();
    this.#modules.set(path, folder);
    return folder;
  }

  #read(folder: string, prefix: string): void {
    this.#folders.add(folder);
    for (const file of readdirSync(folder)) {
      if (!/^(types|micro_time|time).*\.go$/.test(file) || file.includes("_test")) continue;
      let fields: GoField[] = [];
      for (const line of readFileSync(join(folder, file), "utf8").split("\n")) {
        const name = /^type (\w+) struct \{/.exec(line)?.[1];
        if (name !== undefined) {
          fields = [];
          this.#structs.set(`${prefix}.${name}`, fields);
        }
        const field = readField(line);
        if (field !== undefined) fields.push(field);
      }
    }
  }
}

function readField(line: string): GoField | undefined {
  const [, type = "", json = "", protobuf] = FIELD.exec(line) ?? [];
  if (type === "") return undefined;
  const [name = "", ...options] = json.split(",");
  const number = protobuf?.split(",")[1];
  // TypeMeta is not a part of the message.
  if (name === "" && number === undefined) return undefined;
  const isTime = TIME.test(type);
  const isOmitted = options.includes("omitzero") || (options.includes("omitempty") && !isTime);
  return { name, type, isOmitted, number };
}

/** Returns the name of a definition by a Go type in a file of another one. */
function besides(definition: string, type: string): string {
  const name = type.slice(type.lastIndexOf(".") + 1);
  const [group, version] = definition.split(".");
  const prefix = /^\*?metav1\./.test(type) ? "meta.v1" : /^\*?v1\./.test(type) ? "core.v1" : "";
  return `${prefix === "" ? `${group}.${version}` : prefix}.${name}`;
}
