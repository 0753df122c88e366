import { spawn } from "node:child_process";
import { KonvergeError, namespaceSegment, RUN_ID_FORM } from "@konverge/core";
import type { Command } from "commander";
import { groupHelp, runWithClient, withServer, type ClientFlags } from "../ask/run-with-client.ts";
import { targetsOf } from "../ask/targets-of.ts";
import { print, printNote } from "../text/output.ts";

interface OpenFlags extends ClientFlags {
  readonly namespace?: string;
  readonly cluster?: string;
  readonly browser: boolean;
}

const HELP = `
  konverge open                                 # the overview
  konverge open node-pool blue -n demo          # an object
  konverge open node-pool                       # a controller
  konverge open release/default/4711            # a run
  konverge open node-pool blue -n demo --no-browser | pbcopy

Prints the address, and opens it in a browser if stdout is a terminal. Needs
--server or KONVERGE_SERVER, which serves the dashboard.`;

/** A key of an object: its third segment is `resource.group`. A run ID may have as many segments. */
const KEY = /^[^/]+\/[^/]+\/[^/]+\.[^/]+\/[^/]+\/[^/]+$/;

export function addOpenCommand(program: Command): void {
  withServer(program.command("open").description("Print or open the dashboard page of an object"))
    .argument("[controller]", "Controller name, full key, or run ID")
    .argument("[name]", "Object name")
    .option("-n, --namespace <name>", "Namespace; omit for cluster-scoped objects")
    .option("--cluster <name>", "Cluster name (default: KONVERGE_CLUSTER, or default)")
    .option("--no-browser", "Print the address only")
    .addHelpText("afterAll", groupHelp(HELP))
    .action((controller: string | undefined, name: string | undefined, flags: OpenFlags) =>
      runWithClient(flags, async ({ settings: { server }, cluster }) => {
        if (server === undefined) {
          throw new KonvergeError(
            "invalid_request",
            "--server: is required; konverge api serves the dashboard",
          );
        }
        const { namespace, output, browser } = flags;
        const path = pagePath({ controller, name, namespace, cluster });
        const url = new URL(path, server.endsWith("/") ? server : `${server}/`).href;
        print(output, { document: { url }, names: [url], table: () => url });
        if (browser && process.stdout.isTTY && output === "table") openBrowser(url);
      }),
    );
}

interface PageTarget {
  readonly controller: string | undefined;
  readonly name: string | undefined;
  readonly namespace: string | undefined;
  readonly cluster: string;
}

/** Returns the path of a page below the address of the dashboard. */
function pagePath({ controller, name, namespace, cluster }: PageTarget): string {
  if (controller === undefined) return "";
  const segments = (parts: readonly string[]) => parts.map(encodeURIComponent).join("/");
  if (name === undefined && !controller.includes("/")) {
    return `controllers/${segments([controller])}`;
  }
  const run = name === undefined && !KEY.test(controller) ? RUN_ID_FORM.exec(controller) : null;
  if (run !== null) {
    const [, workflow = "", ofCluster = "", id = ""] = run;
    return `runs/${segments([workflow, ofCluster, id])}`;
  }
  const names = name === undefined ? [] : [name];
  const [target] = targetsOf([controller, ...names], { cluster, namespace });
  if (target === undefined) return "";
  const place = [target.cluster, target.controller, namespaceSegment(target.namespace)];
  return `objects/${segments([...place, target.name])}`;
}

/** Starts the browser of the desktop. A machine without one still has the printed address. */
function openBrowser(url: string): void {
  const [command, ...args] =
    process.platform === "darwin"
      ? ["open"]
      : process.platform === "win32"
        ? ["cmd", "/c", "start", ""]
        : ["xdg-open"];
  if (command === undefined) return;
  const child = spawn(command, [...args, url], { stdio: "ignore", detached: true });
  child.once("error", () => printNote(`cannot start ${command}; open the address manually`));
  child.unref();
}
