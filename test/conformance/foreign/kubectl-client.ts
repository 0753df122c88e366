import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dump, load } from "js-yaml";
import { shellLines } from "../../support/shell-lines.ts";
import type { TestedServer } from "../servers.ts";
import { runProgram } from "./run-program.ts";
import { sameText } from "./same-text.ts";

/** What a command printed, without the parts that differ between servers. */
export interface Printed {
  readonly command: string;
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** A list of kubectl commands and the files that they read. */
export interface Script {
  readonly name: string;
  /** Lines as typed in a shell, without the word kubectl; `< file` is the only redirection. */
  readonly commands: string;
}

interface KubectlOptions {
  /** The path of kubectl. */
  readonly program: string;
  /** For the kubeconfig, the cache and the files of the scripts. */
  readonly folder: string;
  /** The namespace of commands that name none. */
  readonly namespace: string;
  /** The files that the commands read, by name. Scripts of a shell are executable. */
  readonly files: Readonly<Record<string, string>>;
}

/** Long enough for a busy machine; `kubectl wait` and watches have their own, shorter limits. */
const LIMIT_MS = 60_000;

/** Runs kubectl in one namespace of a server. */
export class KubectlClient {
  readonly #options: KubectlOptions;
  readonly #env: NodeJS.ProcessEnv;

  constructor(server: TestedServer, options: KubectlOptions) {
    const { folder, files, namespace } = options;
    this.#options = options;
    mkdirSync(folder, { recursive: true });
    for (const [file, text] of Object.entries(files)) {
      writeFileSync(join(folder, file), text, { mode: 0o755 });
    }
    const kubeconfig = join(folder, "kubeconfig");
    writeFileSync(kubeconfig, inNamespace(server.kubeconfig, namespace));
    this.#env = {
      PATH: process.env["PATH"],
      // The home folder has kubectl's cache of discovery documents, the other one the files of `kubectl diff`.
      HOME: folder,
      TMPDIR: folder,
      KUBECONFIG: kubeconfig,
      KUBE_EDITOR: join(folder, "editor.sh"),
      TZ: "UTC",
    };
  }

  /** Runs the commands in order. */
  async run(commands: string): Promise<readonly Printed[]> {
    const printed: Printed[] = [];
    for (const words of shellLines(commands)) printed.push(await this.#one(words));
    return printed;
  }

  async #one(words: readonly string[]): Promise<Printed> {
    const { program, folder, files, namespace } = this.#options;
    const redirect = words.indexOf("<");
    const args = redirect === -1 ? words : words.slice(0, redirect);
    const input = redirect === -1 ? "" : (files[words[redirect + 1] ?? ""] ?? "");
    const run = { cwd: folder, env: this.#env, input, limitMs: LIMIT_MS };
    const { code, out, err } = await runProgram(program, args, run);
    const show = (text: string) => sameText(text, { folder, namespace });
    return { command: args.join(" "), code, out: show(out), err: show(err) };
  }
}

/** Changes the namespace of a kubeconfig's contexts. */
export function inNamespace(kubeconfig: string, namespace: string): string {
  const config = load(kubeconfig) as {
    readonly contexts: readonly { readonly context: Record<string, unknown> }[];
  };
  for (const { context } of config.contexts) context["namespace"] = namespace;
  return dump(config);
}
